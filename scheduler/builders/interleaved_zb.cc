#include "stagecraft/scheduler/builders/interleaved_zb.h"

#include <algorithm>

#include "stagecraft/scheduler/builders/interleaved.h"
#include "stagecraft/scheduler/builders/row_list.h"

namespace stagecraft {
namespace {

Schedule::Row zero_bubble_row(const LoopOrder& order, int r, int warm_up) {
  RowList list;
  int weights = 0;
  const auto forward = [&](int k) {
    const auto [stage, m] = order.forward(r, k);
    list.forward(stage, m);
  };
  const auto next_weight = [&] {
    const auto [stage, m] = order.backward(r, weights++);
    list.backward_weight(stage, m);
  };
  for (int k = 0; k < warm_up; ++k) {
    forward(k);
  }
  for (int k = 0; k < order.total(); ++k) {
    if (warm_up + k < order.total()) {
      forward(warm_up + k);
    }
    const auto [stage, m] = order.backward(r, k);
    list.backward_input(stage, m);
    if (k >= r) {
      next_weight();
    }
  }
  while (weights < order.total()) {
    next_weight();
  }
  return list.take();
}

}  // namespace

Schedule interleaved_zb(int ranks, int microbatches, int chunks) {
  const LoopOrder order("interleaved-zb", ranks, microbatches, chunks);
  std::vector<Schedule::Row> rows;
  for (int r = 0; r < ranks; ++r) {
    rows.push_back(zero_bubble_row(
        order, r, std::min(order.total(), (chunks - 1) * order.group() + ranks - 1 - r)));
  }
  return finish(std::move(rows), StageGraph::chain(ranks * chunks), microbatches);
}

}  // namespace stagecraft
