#include "stagecraft/actors/executor/stage/gradient_norm.h"

#include <algorithm>
#include <limits>

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/TensorIterator.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/view_as_real.h>

#include "stagecraft/base/check.h"
#include "stagecraft/compiler/libtorch/program_device.h"

namespace stagecraft {
namespace {

/// Returns the sum of one block. Adds several sums side by side: a single sum would wait for each
/// addition.
template <class T>
double sum_of_squares(const T* x, std::int64_t count) {
  constexpr std::int64_t kLanes = 16;
  double lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t k = 0; k < kLanes; ++k) {
      const auto value = static_cast<double>(x[i + k]);
      lanes[k] += value * value;
    }
  }
  for (std::int64_t k = 0; i < count; ++i, ++k) {
    const auto value = static_cast<double>(x[i]);
    lanes[k] += value * value;
  }
  double sum = 0.0;
  for (const double lane : lanes) {
    sum += lane;
  }
  return sum;
}

/// LibTorch's iterator distributes the blocks over its threads: it runs over one element per block.
template <class T>
double squared_norm(const T* x, std::int64_t count) {
  if (count <= kNormBlock) {
    return sum_of_squares(x, count);
  }
  const std::int64_t blocks = (count + kNormBlock - 1) / kNormBlock;
  const at::Tensor numbers = at::arange(blocks, at::kLong);
  const at::Tensor sums = at::empty({blocks}, at::kDouble);
  at::TensorIterator each = at::TensorIteratorConfig()
                                .check_all_same_dtype(false)
                                .add_output(sums)
                                .add_const_input(numbers)
                                .build();
  each.for_each(
      [&](char** data, const std::int64_t* strides, std::int64_t some, std::int64_t rows) {
        SC_CHECK(rows == 1, "the iterator has one dimension");
        for (std::int64_t i = 0; i < some; ++i) {
          const auto begin =
              *reinterpret_cast<const std::int64_t*>(data[1] + i * strides[1]) * kNormBlock;
          *reinterpret_cast<double*>(data[0] + i * strides[0]) =
              sum_of_squares(x + begin, std::min(kNormBlock, count - begin));
        }
      },
      /*grain_size=*/1);
  double total = 0.0;
  for (std::int64_t b = 0; b < blocks; ++b) {
    total += sums.const_data_ptr<double>()[b];
  }
  return total;
}

/// Returns the squared norm of the mean; infinity if it exceeds the arithmetic of the type.
double of_mean(double squared_sum, at::ScalarType type, double weight) {
  double largest = 0.0;
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, type, "squared_norm_of_mean", [&] {
    largest = std::numeric_limits<at::opmath_type<scalar_t>>::max();
  });
  const double squared = squared_sum / (weight * weight);
  return squared > largest ? std::numeric_limits<double>::infinity() : squared;
}

at::Tensor as_real(const at::Tensor& sum) {
  return sum.is_complex() ? at::view_as_real(sum) : sum;
}

}  // namespace

double squared_norm_of_mean(const at::Tensor& sum, double weight) {
  const at::Tensor real = as_real(sum);
  SC_CHECK(real.is_contiguous(), "the sum of a gradient is contiguous");
  double squared = 0.0;
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::kHalf, at::kBFloat16, real.scalar_type(), "squared_norm_of_mean", [&] {
        squared = squared_norm(real.const_data_ptr<scalar_t>(), real.numel());
      });
  return of_mean(squared, real.scalar_type(), weight);
}

std::vector<double> squared_norms_of_means(const std::vector<at::Tensor>& sums, double weight) {
  std::vector<double> norms;
  if (sums.empty() || is_program_device(sums.front().device())) {
    for (const at::Tensor& sum : sums) {
      norms.push_back(squared_norm_of_mean(sum, weight));
    }
    return norms;
  }
  std::vector<at::Tensor> squared;
  for (const at::Tensor& sum : sums) {
    squared.push_back(as_real(sum).to(at::kDouble).square().sum());
  }
  const at::Tensor read = at::stack(squared).cpu();
  for (std::size_t i = 0; i < sums.size(); ++i) {
    norms.push_back(
        of_mean(read.const_data_ptr<double>()[i], as_real(sums[i]).scalar_type(), weight));
  }
  return norms;
}

}  // namespace stagecraft
