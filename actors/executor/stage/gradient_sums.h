/// GradientSums adds up the gradients of a stage's trained parameters over microbatches. Gradients
/// come in together after a backward, or each as soon as autograd has it. The second way adds a
/// gradient while it is in cache, and all gradients of a stage never exist at the same time.
///
/// A StageBuckets makes it and shares it with the hooks that it puts on the parameters. It is
/// confined to the thread that trains the stage.
/// GS-1: a gradient is taken when it is complete: autograd has added up the parameter's uses. So it
///       is the tensor that the backward would have returned, and the same operator adds it to the
///       sum.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace stagecraft {

class GradientSums {
 public:
  /// `sums`: views to write to, one per parameter. `leaves`: the parameters; none if no gradient is
  /// taken.
  GradientSums(std::vector<at::Tensor> sums, const std::vector<at::Tensor>& leaves);
  GradientSums(const GradientSums&) = delete;  // hooks point at it
  GradientSums& operator=(const GradientSums&) = delete;
  ~GradientSums();

  /// Forgets the sums.
  void begin();
  /// Forgets those of these parameters (by number).
  void begin(const std::vector<std::size_t>& which);

  /// Ends a microbatch for these parameters (by number): adds their gradients that were not taken,
  /// times its weight. `gradients`: of all parameters. An undefined gradient counts as zero.
  void add(const std::vector<std::size_t>& which,
           const std::vector<at::Tensor>& gradients,
           double weight);

  /// While a Taking lives, the sums take the gradients of these parameters (by number), times the
  /// weight, and a backward returns undefined tensors in their place. Without a weight they take
  /// none.
  class Taking {
   public:
    Taking(GradientSums& sums, const std::vector<std::size_t>& which, std::optional<double> weight);
    ~Taking();
    Taking(const Taking&) = delete;
    Taking& operator=(const Taking&) = delete;

   private:
    GradientSums& sums_;
  };

 private:
  class Hook;
  struct Arrivals;
  std::shared_ptr<Arrivals> arrivals_;
};

}  // namespace stagecraft
