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

/// LibTorch's iterator distributes the blocks of a large tensor over its threads: it runs over one
/// element per block.
template <class T>
void add_squares(SquareTree& tree, std::int64_t first, const T* x, std::int64_t count) {
  constexpr std::int64_t kAlone = 32 * kNormBlock;
  const std::int64_t blocks = (count + kNormBlock - 1) / kNormBlock;
  const auto sum_of = [&](std::int64_t block) {
    const std::int64_t begin = block * kNormBlock;
    return sum_of_squares(x + begin, std::min(kNormBlock, count - begin));
  };
  if (count <= kAlone) {
    for (std::int64_t b = 0; b < blocks; ++b) {
      tree.add({.level = 0, .index = first + b, .sum = sum_of(b)});
    }
    return;
  }
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
          *reinterpret_cast<double*>(data[0] + i * strides[0]) =
              sum_of(*reinterpret_cast<const std::int64_t*>(data[1] + i * strides[1]));
        }
      },
      /*grain_size=*/32);
  for (std::int64_t b = 0; b < blocks; ++b) {
    tree.add({.level = 0, .index = first + b, .sum = sums.const_data_ptr<double>()[b]});
  }
}

at::Tensor as_real(const at::Tensor& sum) {
  return sum.is_complex() ? at::view_as_real(sum) : sum;
}

}  // namespace

void SquareTree::add(Run run) {
  while (!runs_.empty() && runs_.back().level == run.level && run.index % 2 == 1 &&
         runs_.back().index + 1 == run.index) {
    run = {run.level + 1, run.index / 2, runs_.back().sum + run.sum};
    runs_.pop_back();
  }
  runs_.push_back(run);
}

double SquareTree::total() const {
  double sum = 0.0;
  for (std::size_t i = runs_.size(); i-- > 0;) {
    sum = i + 1 == runs_.size() ? runs_[i].sum : runs_[i].sum + sum;
  }
  return sum;
}

std::vector<SquareTree::Run> SquareTree::runs_of(std::int64_t begin, std::int64_t end) {
  std::vector<Run> runs;
  while (begin < end) {
    int level = 0;
    while (begin % (std::int64_t{2} << level) == 0 && begin + (std::int64_t{2} << level) <= end) {
      ++level;
    }
    runs.push_back({level, begin >> level, 0.0});
    begin += std::int64_t{1} << level;
  }
  return runs;
}

SquareTree squares_of(const at::Tensor& part, std::int64_t begin) {
  const at::Tensor real = as_real(part);
  SC_CHECK(real.is_contiguous(), "the sum of a gradient is contiguous");
  const std::int64_t first = begin * (part.is_complex() ? 2 : 1) / kNormBlock;
  SquareTree tree;
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, real.scalar_type(), "squares_of", [&] {
    add_squares(tree, first, real.const_data_ptr<scalar_t>(), real.numel());
  });
  return tree;
}

double largest_of(at::ScalarType type) {
  double largest = 0.0;
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::kHalf, at::kBFloat16, c10::toRealValueType(type), "largest_of", [&] {
        largest = std::numeric_limits<at::opmath_type<scalar_t>>::max();
      });
  return largest;
}

double squared_norm_of_mean(const at::Tensor& sum, double weight) {
  return squared_norm_of_mean(squares_of(sum, 0).total(), weight);
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
    norms.push_back(squared_norm_of_mean(read.const_data_ptr<double>()[i], weight));
  }
  return norms;
}

}  // namespace stagecraft
