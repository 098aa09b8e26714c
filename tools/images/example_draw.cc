#include "stagecraft/tools/images/example_draw.h"

#include <map>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/randperm.h>
#include <ATen/ops/tensor.h>

namespace stagecraft::tools {
namespace {

constexpr std::int64_t kHeldOutOf = 10;
// Training counts its steps from 0.
constexpr std::int64_t kEvaluationStep = -1;

at::Tensor drawn(const at::Tensor& from,
                 std::uint64_t seed,
                 std::int64_t step,
                 std::int64_t count) {
  at::Generator generator = generator_of(seed, step, Drawn::Examples);
  std::vector<at::Tensor> orders;
  for (std::int64_t missing = count; missing > 0; missing -= from.size(0)) {
    orders.push_back(at::randperm(from.size(0), generator, at::kLong));
  }
  return at::index_select(from, 0, at::cat(orders).narrow(0, 0, count));
}

}  // namespace

ExampleDraw::ExampleDraw(const std::vector<std::int64_t>& classes) {
  std::map<std::int64_t, std::int64_t> sizes, seen;
  for (const std::int64_t c : classes) {
    ++sizes[c];
  }
  std::vector<std::int64_t> trained, held_out;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const std::int64_t size = sizes[classes[i]];
    const std::int64_t place = ++seen[classes[i]];
    const bool last_of_few = size > 1 && size < kHeldOutOf && place == size;
    (place % kHeldOutOf == 0 || last_of_few ? held_out : trained)
        .push_back(static_cast<std::int64_t>(i));
  }
  trained_ = at::tensor(trained, at::kLong);
  held_out_ = at::tensor(held_out, at::kLong);
}

at::Tensor ExampleDraw::of_step(std::uint64_t seed, std::int64_t step, std::int64_t count) const {
  return drawn(trained_, seed, step, count);
}

at::Tensor ExampleDraw::of_evaluation(std::uint64_t seed, std::int64_t count) const {
  return drawn(held_out_, seed, kEvaluationStep, count);
}

at::Generator generator_of(std::uint64_t seed, std::int64_t step, Drawn what) {
  // Each step has a seed of its own, as for texts, rather than one long stream.
  constexpr unsigned kBeyondSteps = 48;
  return at::make_generator<at::CPUGeneratorImpl>(
      seed * 7'919 + 17 + static_cast<std::uint64_t>(step) +
      (static_cast<std::uint64_t>(what) << kBeyondSteps));
}

}  // namespace stagecraft::tools
