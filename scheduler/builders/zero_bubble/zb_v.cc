#include "stagecraft/scheduler/builders/zero_bubble/zb_v.h"

#include <algorithm>

#include "stagecraft/scheduler/builders/parts/row_list.h"

namespace stagecraft {
namespace {

/// One chunk of a row. It hands out its microbatches kind by kind and skips those that do not
/// exist.
class Chunk {
 public:
  Chunk(RowList& list, int stage, int microbatches)
      : list_(list), stage_(stage), microbatches_(microbatches) {}

  [[nodiscard]] int forwards() const { return forwards_; }
  [[nodiscard]] int weights() const { return weights_; }
  void forward() {
    if (forwards_++ < microbatches_) {
      list_.forward(stage_, forwards_ - 1);
    }
  }
  void input() {
    if (inputs_++ < microbatches_) {
      list_.backward_input(stage_, inputs_ - 1);
    }
  }
  void weight() {
    if (weights_++ < microbatches_) {
      list_.backward_weight(stage_, weights_ - 1);
    }
  }

 private:
  RowList& list_;
  int stage_;
  int microbatches_;
  int forwards_ = 0;
  int inputs_ = 0;
  int weights_ = 0;
};

template <class Body>
void times(int count, Body&& body) {
  for (int i = 0; i < count; ++i) {
    body();
  }
}

/// Returns the row for `n` microbatches, of which `microbatches` exist.
Schedule::Row v_row(int r, int ranks, int microbatches, int n) {
  RowList list;
  Chunk down(list, r, microbatches);
  Chunk up(list, 2 * ranks - 1 - r, microbatches);
  const auto round_up = [&] {
    up.forward();
    up.input();
    up.weight();
  };
  // Warm-up: fill the V, then let the row's upper chunk turn around.
  times(2 * (ranks - r) - 1, [&] { down.forward(); });
  times(r, [&] {
    up.forward();
    down.forward();
  });
  times(ranks - r, round_up);
  // Steady state.
  while (up.forwards() < down.forwards() || down.forwards() < n) {
    if (down.forwards() < n) {
      down.forward();
    }
    down.input();
    down.weight();
    round_up();
  }
  // Cool-down: input halves first (the next row waits for them); weight halves fill the rest.
  times(r, [&] {
    down.input();
    up.input();
  });
  times(ranks - r, [&] {
    down.input();
    down.weight();
  });
  times(n - up.weights(), [&] { up.weight(); });
  times(n - down.weights(), [&] { down.weight(); });
  return list.take();
}

}  // namespace

Schedule zb_v(int ranks, int microbatches) {
  require_positive("zb-v", "devices", ranks);
  require_positive("zb-v", "microbatches", microbatches);
  std::vector<Schedule::Row> rows;
  for (int r = 0; r < ranks; ++r) {
    rows.push_back(v_row(r, ranks, microbatches, std::max(2 * ranks - 1, microbatches)));
  }
  return finish(std::move(rows), StageGraph::chain(2 * ranks), microbatches);
}

}  // namespace stagecraft
