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

at::Tensor one_value(double value) {
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
  const LabeledBatch given{{one_value(1)}, {one_value(2)}};
  CHECK(values_of(internal::batch_of(given).labels) == std::vector{2.0});
  const LabeledBatch example = internal::batch_of(Example{one_value(1), one_value(2)});
  CHECK(values_of(example.inputs) == std::vector{1.0});
  CHECK(values_of(example.labels) == std::vector{2.0});
  const LabeledBatch pair = internal::batch_of(std::pair(one_value(3), one_value(4)));
  CHECK(values_of(pair.inputs) == std::vector{3.0});
  CHECK(values_of(pair.labels) == std::vector{4.0});
  const LabeledBatch alone = internal::batch_of(one_value(5));
  CHECK(values_of(alone.inputs) == std::vector{5.0});
  CHECK(alone.labels.empty());
}

TEST_CASE("a side is a tensor, or ranges and tuples of tensors nested in any way",
          "[actors][data]") {
  const std::vector<at::Tensor> several{one_value(1), one_value(2)};
  const auto nested =
      std::tuple(one_value(3), std::pair(one_value(4), std::array{one_value(5), one_value(6)}));
  const LabeledBatch batch = internal::batch_of(std::pair(several, nested));
  CHECK(values_of(batch.inputs) == std::vector{1.0, 2.0});
  CHECK(values_of(batch.labels) == std::vector{3.0, 4.0, 5.0, 6.0});
}

TEST_CASE("samples are stacked in a new first dimension", "[actors][data]") {
  const std::vector<Example> samples{{one_value(1), one_value(10)}, {one_value(2), one_value(20)}};
  const LabeledBatch batch = internal::batch_of(samples);
  CHECK(at::equal(batch.inputs[0].tensor, at::stack({one_value(1), one_value(2)})));
  CHECK(at::equal(batch.labels[0].tensor, at::stack({one_value(10), one_value(20)})));
}

TEST_CASE("samples that make no batch are refused", "[actors][data]") {
  CHECK_THAT(refusal([] { (void)stacked({}); }), ContainsSubstring("no samples"));
  const LabeledBatch one{{one_value(1)}, {}}, two{{one_value(1), one_value(2)}, {}};
  CHECK_THAT(refusal([&] {
               (void)stacked({one, two});
             }),
             ContainsSubstring("have 1 and 2 tensors"));
}

TEST_CASE("a range is read from its beginning in every epoch", "[actors][data]") {
  std::list<LabeledBatch> batches{{{one_value(1)}, {}}, {{one_value(2)}, {}}};
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
