#include "stagecraft/tests/compiler/import/trained_tensors.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace stagecraft::testing {
namespace {

/// A rate that is wrong by 1e-3 changes every parameter by 1e-3 of its change.
constexpr double kOfChange = 3e-4;
/// A parameter is rounded once a step.
constexpr double kOfParameter = 5 * 0.5 * std::numeric_limits<float>::epsilon();
constexpr double kOfBuffer = 1e-5;

at::Tensor exact(const at::Tensor& t) {
  return t.detach().to(t.is_complex() ? at::kComplexDouble : at::kDouble);
}

double largest_element(const at::Tensor& t) {
  return t.numel() == 0 ? 0.0 : t.abs().max().item().toDouble();
}

double median(std::vector<double> values) {
  if (values.empty()) {
    return 0.0;
  }
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

TrainedTensors::TrainedTensors(const std::vector<NamedTensor>& initial,
                               std::vector<NamedTensor> expected)
    : expected_(std::move(expected)) {
  for (const NamedTensor& p : initial) {
    initial_.emplace(p.name, p.tensor.detach().clone());
  }
  std::vector<double> scales, changes, buffers;
  for (const NamedTensor& t : expected_) {
    if (const auto before = initial_.find(t.name); before != initial_.end()) {
      scales.push_back(largest_element(exact(t.tensor).sub(exact(before->second))));
      if (scales.back() > 0.0) {  // the others are not trained
        changes.push_back(scales.back());
      }
    } else {
      scales.push_back(largest_element(exact(t.tensor)));
      buffers.push_back(scales.back());
    }
  }
  const double typical_change = median(std::move(changes));
  const double typical_buffer = median(std::move(buffers));
  for (std::size_t i = 0; i < expected_.size(); ++i) {
    const at::Tensor& tensor = expected_[i].tensor;
    if (!tensor.is_floating_point() && !tensor.is_complex()) {
      allowed_.push_back(0.0);
    } else if (initial_.contains(expected_[i].name)) {
      allowed_.push_back(kOfChange * std::max(scales[i], typical_change) +
                         kOfParameter * largest_element(exact(tensor)));
    } else {
      allowed_.push_back(kOfBuffer * std::max(scales[i], typical_buffer));
    }
  }
}

double TrainedTensors::distance(std::size_t index, const at::Tensor& found) const {
  const double apart = largest_element(exact(expected_[index].tensor).sub(exact(found)));
  if (apart == 0.0) {
    return 0.0;
  }
  return allowed_[index] > 0.0 ? apart / allowed_[index] : std::numeric_limits<double>::infinity();
}

}  // namespace stagecraft::testing
