#include "stagecraft/scheduler/builders/kfkb.h"

#include <algorithm>

#include "stagecraft/scheduler/builders/row_list.h"

namespace stagecraft {

Schedule kfkb(int ranks, int microbatches, int k) {
  require_positive("kfkb", "devices", ranks);
  require_positive("kfkb", "microbatches", microbatches);
  require_positive("kfkb", "k", k);
  require_legal("kfkb", "microbatches divisible by k", "k", k, [&](int value) {
    return value <= microbatches && microbatches % value == 0;
  });
  std::vector<Schedule::Row> rows;
  for (int r = 0; r < ranks; ++r) {
    RowList list;
    int forwards = 0;
    int backwards = 0;
    const auto forwards_up_to = [&](int end) {
      for (; forwards < std::min(end, microbatches); ++forwards) {
        list.forward(r, forwards);
      }
    };
    forwards_up_to(k * (ranks - r));
    while (backwards < microbatches) {
      for (int i = 0; i < k; ++i) {
        list.backward(r, backwards++);
      }
      forwards_up_to(forwards + k);
    }
    rows.push_back(list.take());
  }
  return finish(std::move(rows), StageGraph::chain(ranks), microbatches);
}

}  // namespace stagecraft
