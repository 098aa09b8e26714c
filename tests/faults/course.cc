#include "stagecraft/tests/faults/course.h"

#include <utility>

namespace stagecraft::tests {

AdamW course_optimizer() {
  return {.lr = 1e-2};
}

Course::Course(const Program& program,
               std::shared_ptr<const SumOrder> sums,
               const CourseOptions& options)
    : batches_(options.batches),
      same_batch_(options.same_batch),
      reference_(std::make_unique<Reference>(program,
                                             course_optimizer(),
                                             ReferenceOptions{.clip = options.clip,
                                                              .loss_scaling = options.loss_scaling,
                                                              .seed = kCourseSeed,
                                                              .threads = 1,
                                                              .sums = std::move(sums)})) {
  course_.push_back(state());
}

Course::Course(Execution execution, const CourseOptions& options)
    : batches_(options.batches), same_batch_(options.same_batch) {
  const Cluster cluster = Cluster::local(execution.layout.ranks());
  threads_ = std::make_unique<OnThreads>(OnThreads{
      cluster,
      Trainer(cluster,
              std::move(execution),
              course_optimizer(),
              {.clip = options.clip, .loss_scaling = options.loss_scaling, .seed = kCourseSeed})});
  course_.push_back(state());
}

ReferenceStep Course::step(std::int64_t update) {
  const std::int64_t last = (update + 1) * batches_ - 1;
  for (std::int64_t i = update * batches_; i < last; ++i) {
    const Data batch = data(same_batch_ ? 0 : i);
    if (reference_ != nullptr) {
      (void)reference_->accumulate(batch.inputs, batch.labels);
    } else {
      threads_->trainer.accumulate(batch.inputs, batch.labels);
    }
  }
  const Data batch = data(same_batch_ ? 0 : last);
  if (reference_ != nullptr) {
    return reference_->step(batch.inputs, batch.labels);
  }
  const StepResult result = threads_->trainer.step(batch.inputs, batch.labels).get();
  ReferenceStep made;
  made.losses = result.losses;
  made.mean_loss = result.mean_loss;
  made.gradient_norm = result.gradient_norm;
  made.skipped = result.skipped;
  return made;
}

const Expected& Course::after(std::int64_t updates) {
  while (std::ssize(course_) <= updates) {
    ReferenceStep result = step(std::ssize(course_) - 1);
    course_.push_back(state());
    course_.back().result = std::move(result);
  }
  return course_[static_cast<std::size_t>(updates)];
}

Expected Course::state() {
  if (reference_ == nullptr) {
    return {.result = {},
            .weights = weights_of(threads_->trainer),
            .buffers = buffers_of(threads_->trainer)};
  }
  return {.result = {}, .weights = copies_of("weight:"), .buffers = copies_of("buffer:")};
}

StateDict Course::copies_of(std::string_view kind) const {
  StateDict copies;
  for (const StateTensor& state : reference_->state()) {
    if (state.name.starts_with(kind)) {
      copies.emplace_back(state.name.substr(kind.size()), state.tensor.detach().clone());
    }
  }
  return without_spare(std::move(copies));
}

}  // namespace stagecraft::tests
