#include "stagecraft/tests/simulate/unbroken.h"

#include <algorithm>
#include <map>
#include <memory>

#include <ATen/ops/equal.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/tests/simulate/world.h"

namespace stagecraft::simulation {
namespace {

void check_tensors(const Checkpoint& checkpoint,
                   const std::string& kind,
                   const StateDict& expected) {
  for (const auto& [name, tensor] : expected) {
    const auto found = std::ranges::find(checkpoint.tensors, kind + name, &StateTensor::name);
    require(found != checkpoint.tensors.end() && at::equal(found->tensor, tensor),
            fmt::format("a checkpoint has other bits than the unbroken run: {}{}", kind, name));
  }
}

}  // namespace

Unbroken::Unbroken(const Shape& shape)
    : execution(execution_of(shape.way, shape.ranks, shape.outlives)),
      course_(make_course_of(shape)) {
  for (const std::string& way : other_ways(shape.way, shape.ranks)) {
    others.emplace_back(way, &execution_of(way, shape.ranks, shape.outlives));
  }
}

Unbroken& Unbroken::of(const Shape& shape) {
  static std::map<std::string, std::unique_ptr<Unbroken>> all;
  Shape same_bits = shape;
  same_bits.mirror = true;
  same_bits.evaluates = false;
  std::unique_ptr<Unbroken>& one = all[same_bits.text()];
  if (one == nullptr) {
    one = std::make_unique<Unbroken>(shape);
  }
  return *one;
}

void Unbroken::advance(std::int64_t updates, bool evaluates) {
  (void)course_.after(updates);
  while (evaluates && std::ssize(evaluations_) <= updates) {
    if (!on_threads_) {
      const int ranks = execution.layout.ranks();
      on_threads_.emplace(Cluster::local(ranks), execution, tests::course_optimizer());
    }
    const std::int64_t step = std::ssize(evaluations_);
    StateDict state = course_.after(step).weights;
    const StateDict& buffers = course_.after(step).buffers;
    state.insert(state.end(), buffers.begin(), buffers.end());
    for (auto& [name, tensor] : on_threads_->state_dict()) {  // those that no stage uses
      if (std::ranges::none_of(state, [&](const auto& known) { return known.first == name; })) {
        state.emplace_back(name, tensor);
      }
    }
    on_threads_->load_state_dict(state);
    const tests::Data batch = tests::data(step);
    evaluations_.push_back(on_threads_->evaluate(batch.inputs, batch.labels));
  }
}

void Unbroken::check(const StepResult& result) {
  const ReferenceStep& expected = course_.after(result.step).result;
  require(result.losses == expected.losses,
          fmt::format("step {} has other losses than in the unbroken run: {}, not {}",
                      result.step,
                      fmt::join(result.losses, " "),
                      fmt::join(expected.losses, " ")));
  require(result.skipped == expected.skipped &&
              (result.skipped || result.gradient_norm == expected.gradient_norm),
          fmt::format("step {} has a gradient of norm {}, not {} as in the unbroken run",
                      result.step,
                      result.gradient_norm,
                      expected.gradient_norm));
}

void Unbroken::check_state(tests::Trainer& trainer) {
  const StateDict& expected = course_.after(trainer.steps()).weights;
  StateDict weights = tests::weights_of(trainer);
  std::erase_if(weights, [&](const auto& weight) {  // those that no stage uses
    return std::ranges::find(expected, weight.first, &StateDict::value_type::first) ==
           expected.end();
  });
  require(weights.size() == expected.size(), "other weights than the model has");
  for (std::size_t i = 0; i < weights.size(); ++i) {
    require(tests::same_bits({weights[i]}, {expected[i]}),
            fmt::format("other weights than in the unbroken run after step {}: {}",
                        trainer.steps(),
                        weights[i].first));
  }
}

void Unbroken::check_checkpoint(const Checkpoint& checkpoint) {
  const tests::Expected& expected = course_.after(checkpoint.step);
  check_tensors(checkpoint, "weight:", expected.weights);
  check_tensors(checkpoint, "buffer:", expected.buffers);
}

void Unbroken::check_evaluation(std::int64_t updates, double loss) const {
  const double expected = evaluations_[static_cast<std::size_t>(updates)];
  require(loss == expected,
          fmt::format("an evaluation after step {} finds {}, not {} as in the unbroken run",
                      updates,
                      loss,
                      expected));
}

}  // namespace stagecraft::simulation
