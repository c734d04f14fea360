/** What giving zones away counts, since the start. */
export type TransferStats = {
  /** Whole zones sent to their end, asked for by AXFR or because the journal did not reach. */
  wholeTotal: number
  /** Differences sent. */
  differencesTotal: number
  /** IXFR of who had everything. */
  currentTotal: number
  /** Transfers refused: networks, keys, export policy. */
  refusedTotal: number
  /** Queries of any kind whose TSIG is not good: another key, MAC or time. */
  badSignaturesTotal: number
  /** Transfers of names that are no zone of ours. */
  notAuthoritativeTotal: number
  /** Transfers that found too many others waiting. */
  overloadedTotal: number
  /** Transfers whose client went away, did not read, or took too long. */
  brokenTotal: number
  recordsTotal: number
  messagesTotal: number
  octetsTotal: number
  /** Subscriptions that were not taken since there were too many. */
  subscriptionsRefusedTotal: number
  /** NOTIFY requests: sent down subscribed connections, or over UDP; answered; without an answer. */
  notifyPushedTotal: number
  notifySentTotal: number
  notifyAnsweredTotal: number
  notifyLostTotal: number
}

export const makeTransferStats = (): TransferStats => ({
  wholeTotal: 0,
  differencesTotal: 0,
  currentTotal: 0,
  refusedTotal: 0,
  badSignaturesTotal: 0,
  notAuthoritativeTotal: 0,
  overloadedTotal: 0,
  brokenTotal: 0,
  recordsTotal: 0,
  messagesTotal: 0,
  octetsTotal: 0,
  subscriptionsRefusedTotal: 0,
  notifyPushedTotal: 0,
  notifySentTotal: 0,
  notifyAnsweredTotal: 0,
  notifyLostTotal: 0
})
