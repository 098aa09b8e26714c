#include "stagecraft/compiler/fuse/fused_region.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include "stagecraft/base/check.h"

namespace stagecraft {
namespace {

using Tensors = std::vector<at::Tensor>;

/// The backward of a region. Runs as often as it is asked while it keeps what it needs, each time
/// for the gradients that are wanted: a split backward asks twice.
class RegionBackward final : public torch::autograd::Node {
 public:
  RegionBackward(std::string name, std::shared_ptr<const FusePlan> plan, Tensors saved)
      : name_(std::move(name)), plan_(std::move(plan)), saved_(std::move(saved)) {}

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    SC_CHECK(!released_, "a graph that runs backward again was to be kept");
    std::vector<bool> needed(num_outputs());
    for (std::size_t i = 0; i < needed.size(); ++i) {
      needed[i] = task_should_compute_output(i);
    }
    return plan_->backward(saved_, gradients, needed);
  }

  void release_variables() override {
    saved_.clear();
    released_ = true;
  }

  [[nodiscard]] std::string name() const override { return name_; }

 private:
  const std::string name_;
  const std::shared_ptr<const FusePlan> plan_;
  Tensors saved_;
  bool released_ = false;
};

/// Plans of this process, as long as a region has them: ranks and steps make the same one once.
std::shared_ptr<const FusePlan> shared_plan(const std::string& signature,
                                            const PlainRegion& plain,
                                            const RegionCase& now) {
  static std::mutex mutex;
  static auto& all = *new std::map<std::pair<std::string, RegionCase>,
                                   std::weak_ptr<const FusePlan>>;  // ranks outlive statics
  const std::lock_guard lock(mutex);
  std::weak_ptr<const FusePlan>& known = all[{signature, now}];
  std::shared_ptr<const FusePlan> plan = known.lock();
  if (!plan) {
    plan = std::make_shared<const FusePlan>(plain, now);
    known = plan;
    std::erase_if(all, [](const auto& one) { return one.second.expired(); });
  }
  return plan;
}

}  // namespace

FusedRegion::FusedRegion(std::string name, std::string signature, PlainRegion plain)
    : name_("stagecraft::fused " + std::move(name)),
      signature_(std::move(signature)),
      plain_(std::move(plain)) {}

const std::shared_ptr<const FusePlan>& FusedRegion::plan_for(const RegionCase& now) const {
  std::shared_ptr<const FusePlan>& plan = plans_[now];
  if (!plan) {
    plan = shared_plan(signature_, plain_, now);
  }
  last_ = plan.get();
  return plan;
}

Tensors FusedRegion::run(const Tensors& inputs) const {
  RegionCase now{.inputs = {},
                 .gradients = at::GradMode::is_enabled() &&
                              std::ranges::any_of(inputs, &at::Tensor::requires_grad),
                 .threads = at::get_num_threads()};
  for (const at::Tensor& input : inputs) {
    now.inputs.push_back({facts_of(input), now.gradients && input.requires_grad()});
  }
  const std::shared_ptr<const FusePlan>& plan = plan_for(now);
  if (!plan->fault().empty()) {
    return plain_(inputs);
  }
  RECORD_FUNCTION(name_, std::vector<c10::IValue>(inputs.begin(), inputs.end()));
  FusePlan::Forward made = plan->forward(inputs);
  for (at::Tensor& output : made.outputs) {
    output = output.detach();  // of an input, or one returned twice
  }
  if (!now.gradients) {
    return std::move(made.outputs);
  }
  const std::shared_ptr<RegionBackward> node(new RegionBackward(name_, plan, std::move(made.saved)),
                                             torch::autograd::deleteNode);
  node->set_next_edges(torch::autograd::collect_next_edges(inputs));
  for (std::size_t i = 0; i < made.outputs.size(); ++i) {
    if (plan->outputs_require_grad()[i]) {
      torch::autograd::set_history(made.outputs[i], node);
    } else {
      node->add_input_metadata(torch::autograd::Node::undefined_input());
    }
  }
  return std::move(made.outputs);
}

}  // namespace stagecraft
