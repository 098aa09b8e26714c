#include "stagecraft/scheduler/builders/parts/alternating_row.h"

#include "stagecraft/scheduler/builders/parts/row_list.h"

namespace stagecraft {

Schedule::Row alternating_row(const AlternatingRow& row) {
  RowList list;
  int forwards = 0;
  int weights = 0;
  const auto next_forward = [&] {
    if (forwards < row.total) {
      const auto [stage, m] = row.forward(forwards++);
      list.forward(stage, m);
    }
  };
  const auto next_weight = [&] {
    const auto [stage, m] = row.backward(weights++);
    list.backward_weight(stage, m);
  };
  for (int k = 0; k < row.warm_up && k < row.total; ++k) {
    next_forward();
  }
  for (int k = 0; k < row.total; ++k) {
    next_forward();
    const auto [stage, m] = row.backward(k);
    if (!row.weight_lag) {
      list.backward(stage, m);
      continue;
    }
    list.backward_input(stage, m);
    if (k >= *row.weight_lag) {
      next_weight();
    }
  }
  while (row.weight_lag && weights < row.total) {
    next_weight();
  }
  return list.take();
}

Turn turns_of(int stage) {
  return [stage](int k) { return std::pair(stage, k); };
}

}  // namespace stagecraft
