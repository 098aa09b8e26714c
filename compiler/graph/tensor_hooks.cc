#include "stagecraft/compiler/graph/tensor_hooks.h"

#include <string_view>
#include <typeinfo>
#include <unordered_set>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/detach.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/cpp_hook.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

using torch::autograd::Edge;
using AutogradNode = torch::autograd::Node;

struct HookNode : AutogradNode {
  std::shared_ptr<const TensorHooks> hooks;

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    return {gradients[0].defined() ? hooks->call(std::move(gradients[0])) : at::Tensor()};
  }
  std::string name() const override { return hooks->name(); }
};

[[noreturn]] void refuse(const AutogradNode& node, std::string_view what) {
  throw Error(
      Errc::CompileCapture,
      fmt::format(
          "the autograd node {} has {}, which a replay cannot call: register it on the tensor "
          "(tensor.register_hook)",
          node.name(),
          what));
}

bool is_hook_of_tensor(const torch::autograd::FunctionPreHook& hook) {
  // Compare names, because LibTorch does not export the type's typeid.
  return c10::demangle(typeid(hook).name()) == "torch::autograd::CppFunctionTensorPreHook";
}

TensorHooks::Calls calls_in(const torch::autograd::hooks_list& list) {
  TensorHooks::Calls calls;
  for (const auto& call : list) {
    if (call) {  // empty if it was removed
      calls.push_back(call);
    }
  }
  return calls;
}

void add(std::vector<FoundHooks>& found, const Edge& of, const torch::autograd::hooks_list& list) {
  TensorHooks::Calls calls = calls_in(list);
  if (!calls.empty()) {
    found.push_back({of, std::move(calls)});
  }
}

void find_at_leaf(const torch::autograd::AccumulateGrad& leaf,
                  const std::shared_ptr<AutogradNode>& node,
                  std::vector<FoundHooks>& found) {
  if (torch::autograd::impl::post_acc_grad_hooks(leaf.variable) != nullptr) {
    refuse(leaf, "a hook that runs after the accumulation of its gradient");
  }
  if (const auto& list = torch::autograd::impl::get_autograd_meta(leaf.variable)->cpp_hooks_list_) {
    add(found, {node, 0}, *list);
  }
}

void find_at(const std::shared_ptr<AutogradNode>& node, std::vector<FoundHooks>& found) {
  if (!node->pre_hooks().empty() || !node->post_hooks().empty()) {
    refuse(*node, "a hook of its own");
  }
  if (const auto* leaf = dynamic_cast<const torch::autograd::AccumulateGrad*>(node.get())) {
    find_at_leaf(*leaf, node, found);
    return;
  }
  for (const auto& hook : node->tensor_pre_hooks()) {
    if (!is_hook_of_tensor(*hook)) {
      refuse(*node, "a hook of another kind than tensor.register_hook makes");
    }
    const auto& of_tensor = static_cast<const torch::autograd::CppFunctionTensorPreHook&>(*hook);
    add(found, {node, static_cast<std::uint32_t>(of_tensor.value_idx_)}, *of_tensor.hooks_);
  }
}

}  // namespace

at::Tensor TensorHooks::call(at::Tensor gradient) const {
  for (const auto& hook : calls_) {
    if (const at::TensorBase changed = hook(gradient); changed.defined()) {
      gradient = at::Tensor(changed);
    }
  }
  return gradient;
}

at::Tensor with_hooks(const at::Tensor& tensor, std::shared_ptr<const TensorHooks> hooks) {
  if (!at::GradMode::is_enabled() || !tensor.requires_grad()) {
    return tensor;
  }
  const std::shared_ptr<HookNode> node(new HookNode, torch::autograd::deleteNode);
  node->hooks = std::move(hooks);
  node->set_next_edges({torch::autograd::impl::gradient_edge(tensor)});
  at::Tensor same = tensor.detach();
  torch::autograd::create_gradient_edge(same, node);
  return same;
}

std::vector<FoundHooks> find_hooks(const at::Tensor& loss) {
  std::vector<FoundHooks> found;
  std::unordered_set<const AutogradNode*> seen;
  std::vector<std::shared_ptr<AutogradNode>> work;
  const auto visit = [&](const std::shared_ptr<AutogradNode>& node) {
    if (node != nullptr && seen.insert(node.get()).second) {
      work.push_back(node);
    }
  };
  visit(loss.requires_grad() ? torch::autograd::impl::gradient_edge(loss).function : nullptr);
  while (!work.empty()) {
    const std::shared_ptr<AutogradNode> node = std::move(work.back());
    work.pop_back();
    find_at(node, found);
    for (const Edge& edge : node->next_edges()) {
      visit(edge.function);
    }
  }
  return found;
}

}  // namespace stagecraft
