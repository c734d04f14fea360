/** The options of the section `cluster`: who we are, which zones are ours, and where their objects come from. */
import {
  dnsLabel,
  domainName,
  flag,
  list,
  oneNetwork,
  option,
  optional,
  path,
  required,
  seconds,
  section,
  server,
  text,
  textOrOff,
  word
} from './option.ts'

/** Regions are compared as they are written. */
export const region = () => text(/^[ -~]{0,63}$/, 'up to 63 printable ASCII characters')

const kubernetesSource = section({
  kubeconfig: optional(path(), 'The kubeconfig file; without it the token and certificate of the pod we run in.'),
  context: optional(text(/^[^\0]+$/, 'the name of a context'), "The kubeconfig's context; without it the current one.")
})

export const sourceSection = section({
  manifests: optional(
    list(path(), 1),
    'Files or folders of Kubernetes YAML or JSON (folders: `*.yaml`, `*.yml`, `*.json`, also in subfolders), read again when they change.'
  ),
  kubernetes: optional(kubernetesSource, 'List and watch of the API server; `{}` inside a pod.'),
  key: optional(
    domainName(),
    'With `mirror`: the TSIG key, one of `transfer.keys`, that our requests are signed with.'
  ),
  mirror: optional(
    list(server(), 1),
    "The zones by transfer from these servers, the cluster's own peerdns, for resolvers on nodes: no access to the API server is needed. They have to allow it (`transfer.allow`)."
  )
})

/** A name, or a namespace and a name; one of them has `{cluster}` in it, once. */
const leasePattern = /^(?=[^{}]*\{cluster\}[^{}]*$)([a-z0-9{}-]{1,71}\/)?[a-z0-9{}]([a-z0-9.{}-]{0,259}[a-z0-9{}])?$/

export const clusterSection = section({
  name: required(dnsLabel(), "This cluster's id, in traces, metrics and MCS names (`<host>.<cluster>.<service>`)."),
  region: option(region(), '', 'Where this cluster is; compared with the regions of peers and clients.'),
  zone: option(domainName(), 'cluster.local', 'The zone of our own Services.'),
  clustersetZone: option(domainName(), 'clusterset.local', 'The zone of ServiceImports (KEP-1645).'),
  ttl: option(
    seconds({ min: '0s', max: '1d' }),
    '5s',
    'TTL of our own records; the annotation `peerdns.io/ttl` on a Service or ServiceImport overrides it.'
  ),
  pods: option(
    word('disabled', 'insecure', 'verified'),
    'insecure',
    'Pod records (`10-0-0-1.<namespace>.pod`): none, for every address, or only for addresses of pods.'
  ),
  reverse: option(
    list(oneNetwork()),
    [],
    'Networks whose PTR records are answered here; other reverse names are peered or forwarded. An address of a Service and of a ServiceImport points to the Service.'
  ),
  importsInZone: option(
    flag(),
    false,
    'Whether a ServiceImport without a Service of its name is answered in `zone` too.'
  ),
  records: option(
    list(text(/\S/, 'a zone-file line')),
    [],
    'Records written by hand, as zone-file lines with whole names, without wildcards and delegations: `db.backend.svc.cluster.local. 10 A 172.30.9.9`.'
  ),
  leases: option(
    textOrOff(
      leasePattern,
      'the namespace and name of Lease objects with `{cluster}` for the cluster: `peerdns/{cluster}-alive`'
    ),
    'off',
    'Leases that source clusters of ServiceImports renew in this cluster (source `kubernetes`): the endpoints of one that no longer does are left out once `leaseDurationSeconds` are over, until it does again. A cluster without a Lease is kept. Without a namespace, all but `kube-node-lease` are searched, which needs the right to list and watch Leases everywhere.'
  ),
  probes: option(
    word('off', 'on'),
    'off',
    'Whether the virtual addresses (not those of pods, which have their readiness) are checked of Services and ServiceImports with the annotation `peerdns.io/probe` (`tcp:8080`, `http:8080/healthz`), and of targets with `probe`.'
  ),
  source: required(sourceSection, 'Where the objects of this cluster come from: exactly one of the keys below it.')
})
