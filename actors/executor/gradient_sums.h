/// GradientSums: where the gradients of a stage's trained parameters are added up over
/// microbatches, and how they get there: handed over together behind a backward, or each as soon as
/// autograd has it, while it is in cache, so that those of a stage are never there all at once.
///
/// Made by a Bucket, shared with the hooks that it puts on the parameters. Confined to the thread
/// that trains the stage.
/// GS-1: a gradient is taken when it is complete: autograd has added up the parameter's uses. So it
///       is the tensor that would have come back, and goes into the sum by the same operator.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace stagecraft {

class GradientSums {
 public:
  /// `sums`: views that are written to; `leaves`: the parameters, likewise one each.
  GradientSums(std::vector<at::Tensor> sums, const std::vector<at::Tensor>& leaves);
  GradientSums(const GradientSums&) = delete;  // hooks point at it
  GradientSums& operator=(const GradientSums&) = delete;
  ~GradientSums();

  /// Forgets what there is.
  void begin();

  /// Ends a microbatch: adds the gradients that were not taken, times its weight; an undefined one
  /// counts as zero.
  void add(const std::vector<at::Tensor>& gradients, double weight);

  /// While it lives, gradients of the parameters of these numbers are taken, times the weight: what
  /// a backward returns in their place is undefined. Without a weight none is.
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
