/// FusedRegion: some operators of a stage as one node of autograd, computed in fused passes.
///
/// Made by the interpreter for each region that regions_of finds. A plan is made when inputs of a
/// new kind arrive, and shared by all regions of the process that are alike.
/// One run at a time per region; its graphs may run backward on another thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/fuse/fuse_plan.h"

namespace stagecraft {

class FusedRegion {
 public:
  /// `name`: for profilers. `signature`: equal for regions that compute the same in every way.
  FusedRegion(std::string name, std::string signature, PlainRegion plain);

  /// What the region's operators return, with the same bits, strides and gradients. Where there is
  /// no plan it runs them one by one.
  [[nodiscard]] std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs) const;

  /// Of its last run; null before.
  [[nodiscard]] const FusePlan* plan() const { return last_; }

 private:
  [[nodiscard]] const std::shared_ptr<const FusePlan>& plan_for(const RegionCase& now) const;

  std::string name_, signature_;
  PlainRegion plain_;
  mutable std::map<RegionCase, std::shared_ptr<const FusePlan>> plans_;
  mutable const FusePlan* last_ = nullptr;
};

}  // namespace stagecraft
