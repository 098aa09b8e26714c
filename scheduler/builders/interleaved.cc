#include "stagecraft/scheduler/builders/interleaved.h"

#include <algorithm>

#include <fmt/format.h>

#include "stagecraft/scheduler/builders/parts/alternating_row.h"
#include "stagecraft/scheduler/builders/parts/row_list.h"

namespace stagecraft {
namespace {

int rounds_of(int ranks, int microbatches) {
  return std::max(1, microbatches / ranks);
}

bool divides(int ranks, int microbatches) {
  return microbatches % rounds_of(ranks, microbatches) == 0;
}

}  // namespace

LoopOrder::LoopOrder(std::string_view builder, int ranks, int microbatches, int chunks)
    : ranks_(ranks), microbatches_(microbatches), chunks_(chunks) {
  require_positive(builder, "devices", ranks);
  require_positive(builder, "microbatches", microbatches);
  require_positive(builder, "chunks", chunks);
  require_legal(builder,
                "microbatches divisible by max(1, microbatches / devices)",
                "microbatches",
                microbatches,
                [&](int m) { return divides(ranks, m); });
  group_ = microbatches / rounds_of(ranks, microbatches);
}

int LoopOrder::microbatch(int k) const {
  return k / (group_ * chunks_) * group_ + k % group_;
}

Turn LoopOrder::forwards(int row) const {
  return [order = *this, row](int k) {
    const int chunk = k / order.group_ % order.chunks_;
    return std::pair(chunk * order.ranks_ + row, order.microbatch(k));
  };
}

Turn LoopOrder::backwards(int row) const {
  return [order = *this, row](int k) {
    const int chunk = order.chunks_ - 1 - k / order.group_ % order.chunks_;
    return std::pair(chunk * order.ranks_ + row, order.microbatch(k));
  };
}

Schedule interleaved(int ranks, int microbatches, int chunks) {
  const LoopOrder order("interleaved", ranks, microbatches, chunks);
  std::vector<Schedule::Row> rows;
  for (int r = 0; r < ranks; ++r) {
    rows.push_back(alternating_row({.total = order.total(),
                                    .warm_up = (chunks - 1) * order.group() + 2 * (ranks - 1 - r),
                                    .forward = order.forwards(r),
                                    .backward = order.backwards(r)}));
  }
  return finish(std::move(rows), StageGraph::chain(ranks * chunks), microbatches);
}

}  // namespace stagecraft
