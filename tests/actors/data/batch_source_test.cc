/// Tests what a batch may be: pairs, samples and structures become inputs and labels.
#include "stagecraft/actors/data/batch_source.h"

#include <array>
#include <list>
#include <map>

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

at::Tensor number(double value) {
  return at::full({2}, value);
}

std::vector<double> values_of(const Batch& batch) {
  std::vector<double> values;
  for (const BatchTensor& t : batch) {
    values.push_back(t.tensor[0].item<double>());
  }
  return values;
}

/// Is a batch as LibTorch's loaders have it.
struct Example {
  at::Tensor data, target;
};

TEST_CASE("a batch is inputs and labels, data and target, or a pair", "[actors][data]") {
  const LabeledBatch given{{number(1)}, {number(2)}};
  CHECK(values_of(internal::batch_of(given).labels) == std::vector{2.0});
  const LabeledBatch example = internal::batch_of(Example{number(1), number(2)});
  CHECK(values_of(example.inputs) == std::vector{1.0});
  CHECK(values_of(example.labels) == std::vector{2.0});
  const LabeledBatch pair = internal::batch_of(std::pair(number(3), number(4)));
  CHECK(values_of(pair.inputs) == std::vector{3.0});
  CHECK(values_of(pair.labels) == std::vector{4.0});
  const LabeledBatch alone = internal::batch_of(number(5));
  CHECK(values_of(alone.inputs) == std::vector{5.0});
  CHECK(alone.labels.empty());
}

TEST_CASE("a side is a tensor, or ranges and tuples of tensors nested in any way",
          "[actors][data]") {
  const std::vector<at::Tensor> several{number(1), number(2)};
  const auto nested = std::tuple(number(3), std::pair(number(4), std::array{number(5), number(6)}));
  const LabeledBatch batch = internal::batch_of(std::pair(several, nested));
  CHECK(values_of(batch.inputs) == std::vector{1.0, 2.0});
  CHECK(values_of(batch.labels) == std::vector{3.0, 4.0, 5.0, 6.0});
}

TEST_CASE("samples are stacked in a new first dimension", "[actors][data]") {
  const std::vector<Example> samples{{number(1), number(10)}, {number(2), number(20)}};
  const LabeledBatch batch = internal::batch_of(samples);
  CHECK(at::equal(batch.inputs[0].tensor, at::stack({number(1), number(2)})));
  CHECK(at::equal(batch.labels[0].tensor, at::stack({number(10), number(20)})));
}

TEST_CASE("samples that make no batch are refused", "[actors][data]") {
  CHECK_THAT(refusal([] { (void)stacked({}); }), ContainsSubstring("no samples"));
  const LabeledBatch one{{number(1)}, {}}, two{{number(1), number(2)}, {}};
  CHECK_THAT(refusal([&] {
               (void)stacked({one, two});
             }),
             ContainsSubstring("have 1 and 2 tensors"));
}

TEST_CASE("a range is read from its beginning in every epoch", "[actors][data]") {
  std::list<LabeledBatch> batches{{{number(1)}, {}}, {{number(2)}, {}}};
  internal::RangeSource source(batches);
  for (int epoch = 0; epoch < 2; ++epoch) {
    source.begin_epoch();
    CHECK(values_of(source.next()->inputs) == std::vector{1.0});
    CHECK(values_of(source.next()->inputs) == std::vector{2.0});
    CHECK_FALSE(source.next().has_value());
  }
}

TEST_CASE("an empty range has no batch", "[actors][data]") {
  const std::vector<LabeledBatch> none;
  internal::RangeSource source(none);
  source.begin_epoch();
  CHECK_FALSE(source.next().has_value());
}

}  // namespace
}  // namespace stagecraft
