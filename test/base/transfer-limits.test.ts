/** What one transfer may bring: no more than a heap of this size holds twice. */
import { test } from 'tap'
import {
  incomingTransferLimits,
  incomingTransferOctets,
  incomingTransferRecords
} from '../../src/base/transfer-limits.ts'

const mib = 1024 * 1024

void test('incomingTransferLimits follow the heap, up to what is the most', async (t) => {
  t.same(incomingTransferLimits(256 * mib), { records: 335_544, octets: 64 * mib })
  t.same(incomingTransferLimits(4_096 * mib), { records: incomingTransferRecords, octets: incomingTransferOctets })
})
