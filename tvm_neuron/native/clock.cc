// clock: when every instruction of a core starts and is complete, by the rules that `tvm_neuron/sim/clock.py` states.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "calls.h"

namespace {

struct Clock {
  // Instructions lie queue by queue; those of queue q are from first[q] to first[q + 1].
  int queues;
  const uint8_t* is_dma;
  const int64_t *first, *busy, *latency;
  const uint8_t* needs_own;
  const int64_t* first_wait;
  const int64_t* waits;     // (queue, count), in order
  const uint8_t* ports;     // a bit for each port that an instruction uses
  int port_count;
  const int8_t* partners;   // [queue][port]: the queue of the other engine, or -1
  int64_t most;
  int own;                  // as a reason: the queue's own earlier result
  int64_t *starts, *done, *waited;
  int8_t* why;

  std::vector<int64_t> next, free, port_free, asked;
  int64_t bus_free = 0;

  // From when on the waits of an instruction are over; `start` and `reason` become later. False: not known yet.
  bool Waits(int64_t at, int64_t& start, int& reason) const {
    for (int64_t i = first_wait[at]; i < first_wait[at + 1]; ++i) {
      const int64_t other = waits[2 * i], count = waits[2 * i + 1];
      if (count > next[other] - first[other]) return false;
      const int64_t time = done[first[other] + count - 1];
      if (time > start) start = time, reason = static_cast<int>(other);
    }
    return true;
  }

  // Until when a queue has a port without waiting to see whether the other one asks earlier.
  int64_t FirstAt(int queue, int port) const {
    const int other = partners[queue * port_count + port];
    if (other < 0 || next[other] == first[other + 1]) return most;
    return (asked[other] >= 0 ? asked[other] : free[other]) - (queue > other);
  }

  bool RunCompute(int queue, bool has_turn) {
    int64_t before_others[8] = {};
    for (int port = 0; port < port_count; ++port) before_others[port] = FirstAt(queue, port);
    const int64_t begin = next[queue], end = first[queue + 1];
    int64_t at = begin, now = free[queue];
    for (; at < end; ++at) {
      int64_t start = now;
      int reason = -1;
      if (needs_own[at] && at > first[queue] && done[at - 1] > start) start = done[at - 1], reason = own;
      if (!Waits(at, start, reason)) break;
      if (ports[at]) {
        bool is_first = true;
        for (int port = 0; port < port_count; ++port) {
          if (ports[at] >> port & 1 && start > before_others[port]) is_first = false;
        }
        if (!has_turn && !is_first) {
          asked[queue] = start;
          break;
        }
        has_turn = false;
        asked[queue] = -1;
        for (int port = 0; port < port_count; ++port) {
          if (ports[at] >> port & 1 && port_free[port] > start) {
            start = port_free[port], reason = partners[queue * port_count + port];
          }
        }
        for (int port = 0; port < port_count; ++port) {
          if (ports[at] >> port & 1) port_free[port] = start + busy[at];
        }
      }
      starts[at] = start, waited[at] = start - now, why[at] = static_cast<int8_t>(reason);
      now = start + busy[at];
      done[at] = now + latency[at];
    }
    next[queue] = at, free[queue] = now;
    return at > begin;
  }

  // Whether all instructions ran.
  bool Run() {
    next.assign(first, first + queues);
    free.assign(queues, 0), port_free.assign(port_count, 0), asked.assign(queues, -1);
    while (true) {
      for (bool ran = true; ran;) {
        ran = false;
        for (int queue = 0; queue < queues; ++queue) {
          if (!is_dma[queue] && RunCompute(queue, false)) ran = true;
        }
      }
      int best = -1, best_reason = -1, asks = -1;
      int64_t best_ready = 0;
      for (int queue = 0; queue < queues; ++queue) {
        if (!is_dma[queue]) {
          if (asked[queue] >= 0 && (asks < 0 || asked[queue] < asked[asks])) asks = queue;
          continue;
        }
        int64_t ready = free[queue];
        int reason = -1;
        if (next[queue] == first[queue + 1] || !Waits(next[queue], ready, reason)) continue;
        if (best < 0 || ready < best_ready) best = queue, best_ready = ready, best_reason = reason;
      }
      if (asks >= 0 && (best < 0 || asked[asks] <= best_ready)) {
        RunCompute(asks, true);
        continue;
      }
      if (best < 0) break;
      const int64_t at = next[best]++;
      waited[at] = best_ready - free[best], why[at] = static_cast<int8_t>(best_reason);
      free[best] = best_ready;
      starts[at] = std::max(best_ready + latency[at], bus_free);
      done[at] = bus_free = starts[at] + busy[at];
    }
    for (int queue = 0; queue < queues; ++queue) {
      if (next[queue] != first[queue + 1]) return false;
    }
    return true;
  }
};

}  // namespace

// Writes the times of all instructions, and how long and for what queue each waited. Returns 0 where some wait for ever.
EXPORTED int tvm_neuron_clock(
    int queues, const uint8_t* is_dma, const int64_t* first, const int64_t* busy, const int64_t* latency,
    const uint8_t* needs_own, const int64_t* first_wait, const int64_t* waits, const uint8_t* ports, int port_count,
    const int8_t* partners, int64_t most, int own, int64_t* starts, int64_t* done, int64_t* waited, int8_t* why) {
  Clock clock = {queues, is_dma,   first, busy, latency, needs_own, first_wait, waits, ports, port_count, partners,
                 most,   own,      starts, done, waited, why,       {},         {},    {},    {}};
  return clock.Run();
}
