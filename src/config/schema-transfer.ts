/** The options of the section `transfer`: zones that others take from us. */
import { domainName, flag, itemName, list, networks, option, path, required, section, server, word } from './option.ts'

const keySection = section({
  name: required(domainName(), "The key's name, as the other side calls it."),
  algorithm: option(word('hmac-sha256', 'hmac-sha512'), 'hmac-sha256', 'The algorithm of the key (RFC 8945).'),
  file: required(path(), 'The file that holds the secret in base64.')
})

const exportSection = section({
  namespaces: option(list(itemName()), [], 'Namespaces that are exported; an empty list: all.'),
  services: option(list(itemName()), [], 'Services that are exported, `namespace/name`; an empty list: all.'),
  address: option(
    word('clusterIP', 'endpoints', 'loadBalancer'),
    'clusterIP',
    'Which addresses of a Service others get.'
  ),
  hideEmpty: option(flag(), false, 'Whether Services without ready endpoints are left out for foreign servers.')
})

export const transferSection = section({
  allow: option(list(networks()), [], 'Who may take zones by AXFR and IXFR; nobody unless set.'),
  keys: option(list(keySection), [], 'TSIG keys, one of which a transfer must be signed with if any are set.'),
  notify: option(
    list(server()),
    [],
    'Servers that are told of each change by NOTIFY, besides those that take zones or ask for their SOA.'
  ),
  export: option(exportSection, {}, 'What of our zones is given.')
})
