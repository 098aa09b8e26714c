#include "stagecraft/tests/faults/course.h"

#include <utility>

namespace stagecraft::tests {

AdamW course_optimizer() {
  return {.lr = 1e-2};
}

Course::Course(const Program& program, std::shared_ptr<const SumOrder> sums)
    : reference_(program,
                 course_optimizer(),
                 {.seed = kCourseSeed, .threads = 1, .sums = std::move(sums)}) {
  course_.push_back(state());
}

const Expected& Course::after(std::int64_t updates) {
  while (std::ssize(course_) <= updates) {
    const Data batch = data(std::ssize(course_) - 1);
    ReferenceStep result = reference_.step(batch.inputs, batch.labels);
    course_.push_back(state());
    course_.back().result = std::move(result);
  }
  return course_[static_cast<std::size_t>(updates)];
}

Expected Course::state() const {
  return {.result = {}, .weights = copies_of("weight:"), .buffers = copies_of("buffer:")};
}

StateDict Course::copies_of(std::string_view kind) const {
  StateDict copies;
  for (const StateTensor& state : reference_.state()) {
    if (state.name.starts_with(kind)) {
      copies.emplace_back(state.name.substr(kind.size()), state.tensor.detach().clone());
    }
  }
  return without_spare(std::move(copies));
}

}  // namespace stagecraft::tests
