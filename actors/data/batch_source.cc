#include "stagecraft/actors/data/batch_source.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

Batch stacked_side(const std::vector<LabeledBatch>& samples, Batch LabeledBatch::*side) {
  Batch batch;
  const std::size_t tensors = (samples.front().*side).size();
  for (std::size_t i = 0; i < tensors; ++i) {
    std::vector<at::Tensor> rows;
    for (const LabeledBatch& sample : samples) {
      if ((sample.*side).size() != tensors) {
        throw Error(
            Errc::UsageArgument,
            fmt::format("the samples of a batch have {} and {} tensors: give each the same number",
                        tensors,
                        (sample.*side).size()));
      }
      rows.push_back((sample.*side)[i].tensor);
    }
    batch.emplace_back(at::stack(rows));
  }
  return batch;
}

}  // namespace

LabeledBatch stacked(const std::vector<LabeledBatch>& samples) {
  if (samples.empty()) {
    throw Error(Errc::UsageArgument, "a batch has no samples: give at least one");
  }
  const at::NoGradGuard no_grad;
  return {stacked_side(samples, &LabeledBatch::inputs),
          stacked_side(samples, &LabeledBatch::labels)};
}

}  // namespace stagecraft
