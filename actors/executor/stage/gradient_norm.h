/// gradient_norm computes the norms of parameters' gradients, for the vote.
///
/// GN-1: on the CPU, squares are added in double precision, in blocks of kNormBlock elements
///       counted from the first element, and the blocks as a binary tree by their numbers. The bits
///       depend neither on the gradient's place in a buffer, nor on the ranks that have its blocks,
///       nor on LibTorch's thread count. An accelerator adds in double precision, in its own order.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace stagecraft {

constexpr std::int64_t kNormBlock = 1024;

/// SquareTree adds up the squares of a tensor's blocks, given in their order.
///
///     blocks 3 .. 10  ->  runs [3], [4 .. 7], [8, 9], [10]: the largest parts of the whole tree
class SquareTree {
 public:
  /// The sum of the blocks [index, index + 1) * 2^level.
  struct Run {
    int level = 0;
    std::int64_t index = 0;
    double sum = 0.0;
  };

  /// Adds the run that follows the last one.
  void add(Run run);
  [[nodiscard]] const std::vector<Run>& runs() const { return runs_; }
  /// Returns the sum of all.
  [[nodiscard]] double total() const;

  /// Returns the runs that blocks [begin, end) have, with sums of 0.
  [[nodiscard]] static std::vector<Run> runs_of(std::int64_t begin, std::int64_t end);

 private:
  std::vector<Run> runs_;
};

/// Returns the runs of a part of a gradient that begins at its element `begin`, a multiple of
/// kNormBlock. Requires: a contiguous tensor of a floating or complex type, on the CPU.
[[nodiscard]] SquareTree squares_of(const at::Tensor& part, std::int64_t begin);

/// Returns the squared norm of a mean whose sum has these squares.
[[nodiscard]] inline double squared_norm_of_mean(double squared_sum, double weight) {
  return squared_sum / (weight * weight);
}

/// Returns the largest number of the type's arithmetic (float, for half types too).
[[nodiscard]] double largest_of(at::ScalarType type);

/// Returns the squared norm of `sum` / `weight`, which it reads once. Not finite if an element is
/// not, or if double cannot hold the square.
/// Requires: a contiguous tensor of a floating or complex type.
[[nodiscard]] double squared_norm_of_mean(const at::Tensor& sum, double weight);

/// Returns it for each of several tensors of one device. The host waits for an accelerator once.
[[nodiscard]] std::vector<double> squared_norms_of_means(const std::vector<at::Tensor>& sums,
                                                         double weight);

}  // namespace stagecraft
