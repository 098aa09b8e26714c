#include "stagecraft/scheduler/builders/interleaved.h"

#include <algorithm>

#include <fmt/format.h>

#include "stagecraft/scheduler/builders/row_list.h"

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

std::pair<int, int> LoopOrder::forward(int row, int k) const {
  return {k / group_ % chunks_ * ranks_ + row, microbatch(k)};
}

std::pair<int, int> LoopOrder::backward(int row, int k) const {
  return {(chunks_ - 1 - k / group_ % chunks_) * ranks_ + row, microbatch(k)};
}

Schedule interleaved(int ranks, int microbatches, int chunks) {
  const LoopOrder order("interleaved", ranks, microbatches, chunks);
  std::vector<Schedule::Row> rows;
  for (int r = 0; r < ranks; ++r) {
    RowList list;
    const int warm_up = std::min(order.total(), (chunks - 1) * order.group() + 2 * (ranks - 1 - r));
    const auto forward = [&](int k) {
      const auto [stage, m] = order.forward(r, k);
      list.forward(stage, m);
    };
    for (int k = 0; k < warm_up; ++k) {
      forward(k);
    }
    for (int k = 0; k < order.total(); ++k) {
      if (warm_up + k < order.total()) {
        forward(warm_up + k);
      }
      const auto [stage, m] = order.backward(r, k);
      list.backward(stage, m);
    }
    rows.push_back(list.take());
  }
  return finish(std::move(rows), StageGraph::chain(ranks * chunks), microbatches);
}

}  // namespace stagecraft
