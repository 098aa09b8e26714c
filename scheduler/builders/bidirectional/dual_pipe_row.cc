#include "stagecraft/scheduler/builders/bidirectional/dual_pipe_row.h"

#include <deque>

#include "stagecraft/scheduler/builders/parts/row_list.h"

namespace stagecraft {
namespace {

/// One stream on one row, with its next microbatch.
struct Stream {
  int stage;
  int forwards = 0;
  int backwards = 0;

  Task next_forward() { return {CellKind::Forward, StageId(stage), Microbatch(forwards++)}; }
  Task next_backward() { return {CellKind::Backward, StageId(stage), Microbatch(backwards++)}; }
};

class Phases {
 public:
  explicit Phases(const DualPipeRow& row) : row_(row), near_{row.near_stage}, far_{row.far_stage} {}
  Schedule::Row run();

 private:
  void forward(Stream& s) { list_.forward(s.stage, s.forwards++); }
  void backward(Stream& s);
  void pop_weight();
  void overlap(Stream& f, Stream& b) { list_.group(f.next_forward(), b.next_backward()); }
  void steady();
  void cool_down();

  DualPipeRow row_;
  Stream near_;
  Stream far_;
  RowList list_;
  bool split_ = false;  // backwards postpone their weight half
  std::deque<Task> weights_;
};

void Phases::backward(Stream& s) {
  const Task task = s.next_backward();
  if (split_) {
    list_.backward_input(task.stage.value, task.microbatch.value);
    weights_.push_back(task);
  } else {
    list_.backward(task.stage.value, task.microbatch.value);
  }
}

void Phases::pop_weight() {
  list_.backward_weight(weights_.front().stage.value, weights_.front().microbatch.value);
  weights_.pop_front();
}

void Phases::steady() {
  const bool innermost = row_.depth == row_.half - 1;
  for (int i = 0; i < row_.microbatches - 2 * row_.half + row_.depth + 1; ++i) {
    if (i == 0 && innermost) {
      forward(near_);  // the two streams meet here: nothing can hide the first one
      backward(far_);
    } else {
      overlap(near_, far_);
    }
    overlap(far_, near_);
  }
  for (int i = 0; i < row_.half - row_.depth - 1; ++i) {
    backward(far_);
    overlap(far_, near_);
  }
}

void Phases::cool_down() {
  // Halfway through, backwards start to postpone their weight half to the last phases.
  const int turn = (row_.depth + 1) / 2;
  const bool before_far = row_.depth % 2 == 1;
  for (int i = 0; i < row_.depth + 1; ++i) {
    split_ = split_ || (i == turn && before_far);
    backward(far_);
    split_ = split_ || i == turn;
    backward(near_);
  }
  for (int i = 0; i < row_.half - row_.depth - 1; ++i) {
    pop_weight();
    split_ = true;
    backward(near_);
  }
  while (!weights_.empty()) {
    pop_weight();
  }
}

Schedule::Row Phases::run() {
  const int outer = row_.half - row_.depth - 1;
  for (int i = 0; i < 2 * outer; ++i) {
    forward(near_);
  }
  for (int i = 0; i < row_.depth + 1; ++i) {
    forward(near_);
    forward(far_);
  }
  split_ = true;
  for (int i = 0; i < outer; ++i) {
    backward(far_);
    pop_weight();
    forward(far_);
  }
  split_ = false;
  steady();
  cool_down();
  return list_.take();
}

}  // namespace

Schedule::Row dual_pipe_row(const DualPipeRow& row) {
  return Phases(row).run();
}

}  // namespace stagecraft
