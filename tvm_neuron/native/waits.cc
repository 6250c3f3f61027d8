// waits: for each instruction, which of those before it in other queues must be complete before it starts.

#include <algorithm>
#include <array>
#include <cstdint>
#include <new>
#include <vector>

#include "calls.h"
#include "segments.h"

namespace {

constexpr int kQueues = 12;
using Counts = std::array<int32_t, kQueues>;  // of each queue, how many of its instructions

// What an instruction touches of one memory: cells from `at`, `axes` of (count, step) apart, the last one of step 1.
struct Tile {
  int64_t place, is_write, rank, axes, at;
};

// For every segment of a memory, the last that read it and that wrote it, of each queue.
struct Marks {
  tvm_neuron::Segments segments;
  std::vector<Counts> writes, reads;
};

inline void RaiseTo(Counts& most, const Counts& counts) {
  for (int q = 0; q < kQueues; ++q) most[q] = std::max(most[q], counts[q]);
}

template <typename Do>
inline void ForEachRun(const int64_t* axes, int64_t rank, int64_t at, Do&& act) {
  const int64_t count = axes[0], step = axes[1];
  if (rank == 1) {
    act(at, count);
    return;
  }
  for (int64_t i = 0; i < count; ++i) ForEachRun(axes + 2, rank - 1, at + i * step, act);
}

template <typename Do>
inline void ForEachSegment(const tvm_neuron::Segments& segments, const int64_t* axes, int64_t rank, int64_t at,
                           Do&& act) {
  ForEachRun(axes, rank, at, [&](int64_t first, int64_t count) {
    const int64_t end = segments.At(first + count);
    for (int64_t segment = segments.At(first); segment < end; ++segment) act(segment);
  });
}

// A count is no consequence of the others where no instruction that is waited for has waited for so many. `known` holds
// for each instruction of a queue what is complete when it starts.
void Matters(const Counts& needed, int queue, int64_t position, std::vector<Counts>* known, bool* matters) {
  Counts clock = {};
  if (!known[queue].empty()) clock = known[queue].back();
  clock[queue] = static_cast<int32_t>(position);
  const Counts* theirs[kQueues];
  int others[kQueues], more = 0;
  for (int q = 0; q < kQueues; ++q) {
    if (needed[q] <= clock[q]) continue;
    theirs[more] = &known[q][needed[q] - 1];
    others[more++] = q;
  }
  for (int i = 0; i < more; ++i) {
    int q = others[i];
    matters[q] = std::all_of(theirs, theirs + more, [&](const Counts* there) { return needed[q] > (*there)[q]; });
    clock[q] = needed[q];
  }
  for (int i = 0; i < more; ++i) RaiseTo(clock, *theirs[i]);
  known[queue].push_back(clock);
}

int Waits(int64_t rows, const int32_t* number, const int8_t* queue, const int64_t* position, int64_t statics,
          const int64_t* first_tile, const Tile* all, const int64_t* axes, const int64_t* at, int64_t places,
          const int64_t* cells, int32_t* needed, bool* matters) {
  std::vector<Marks> marks;
  for (int64_t place = 0; place < places; ++place) marks.push_back({tvm_neuron::Segments(cells[place]), {}, {}});
  std::vector<int64_t> turn(statics);
  for (int64_t row = 0; row < rows; ++row) {
    const int32_t its = number[row];
    const int64_t time = turn[its]++;
    for (const Tile* tile = all + first_tile[its]; tile < all + first_tile[its + 1]; ++tile) {
      tvm_neuron::Segments& segments = marks[tile->place].segments;
      ForEachRun(axes + tile->axes, tile->rank, at[tile->at + time],
                 [&](int64_t first, int64_t count) { segments.Cut(first, count); });
    }
  }
  for (Marks& memory : marks) {
    memory.writes.resize(memory.segments.Number());
    memory.reads.resize(memory.writes.size());
  }
  std::fill(turn.begin(), turn.end(), 0);
  std::vector<Counts> known[kQueues];
  for (int64_t row = 0; row < rows; ++row) {
    const int32_t its = number[row];
    const Tile *begin = all + first_tile[its], *end = all + first_tile[its + 1];
    const int64_t time = turn[its]++;
    Counts most = {};
    for (const Tile* tile = begin; tile < end; ++tile) {
      const Marks& memory = marks[tile->place];
      ForEachSegment(memory.segments, axes + tile->axes, tile->rank, at[tile->at + time], [&](int64_t segment) {
        RaiseTo(most, memory.writes[segment]);
        if (tile->is_write) RaiseTo(most, memory.reads[segment]);
      });
    }
    const int32_t count = static_cast<int32_t>(position[row] + 1);
    const int its_queue = queue[row];
    for (const Tile* tile = begin; tile < end; ++tile) {
      Marks& memory = marks[tile->place];
      std::vector<Counts>& its_marks = tile->is_write ? memory.writes : memory.reads;
      ForEachSegment(memory.segments, axes + tile->axes, tile->rank, at[tile->at + time],
                     [&](int64_t segment) { its_marks[segment][its_queue] = count; });
    }
    std::copy(most.begin(), most.end(), needed + row * kQueues);
    Matters(most, its_queue, position[row], known, matters + row * kQueues);
  }
  return 1;
}

}  // namespace

// Instruction i is the next one of static instruction `number[i]`, the `position[i]`-th of `queue[i]`; the tiles of
// static instruction n are those from `first_tile[n]` on, each with where it starts every time. Writes, for each
// instruction and queue, how many must be complete, and whether that is no consequence of the others. Returns 0 where
// there are other than 12 queues, or too little memory.
EXPORTED int tvm_neuron_waits(
    int queues, int64_t rows, const int32_t* number, const int8_t* queue, const int64_t* position, int64_t statics,
    const int64_t* first_tile, const int64_t* tiles, const int64_t* axes, const int64_t* at, int64_t places,
    const int64_t* cells, int32_t* needed, bool* matters) {
  if (queues != kQueues) return 0;
  try {
    return Waits(rows, number, queue, position, statics, first_tile, reinterpret_cast<const Tile*>(tiles), axes, at,
                 places, cells, needed, matters);
  } catch (const std::bad_alloc&) {
    return 0;
  }
}
