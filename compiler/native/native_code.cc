#include "stagecraft/compiler/native/native_code.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/graph/whole_backward.h"

namespace stagecraft {
namespace {

namespace autograd = torch::autograd;

using Tensors = NativeCode::Tensors;

bool needs_gradient(const at::Tensor& tensor) {
  return tensor.requires_grad();
}

/// NativeNode joins the results of one forward to autograd. Keeps NV-1.
struct NativeNode : WholeBackward {
  std::string what;
  Tensors leaves;   ///< of the module's own graph, by next edge; undefined without an edge
  Tensors results;  ///< of the module's own graph, those that a gradient may come to

  Gradients all_gradients(const Gradients& gradients) override {
    if (leaves.size() != num_outputs()) {
      throw Error(Errc::UsageArgument,
                  "the backward of the " + name() + " is called a second time: it runs once");
    }
    Tensors roots, given, wanted;
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (gradients[i].defined()) {
        roots.push_back(results[i]);
        given.push_back(gradients[i]);
      }
    }
    std::ranges::copy_if(leaves, std::back_inserter(wanted), &at::Tensor::defined);
    Gradients all(leaves.size());
    if (roots.empty()) {
      return all;
    }
    Tensors found = autograd::grad(roots,
                                   wanted,
                                   given,
                                   /*retain_graph=*/false,
                                   /*create_graph=*/false,
                                   /*allow_unused=*/true);
    for (std::size_t i = 0, next = 0; i < leaves.size(); ++i) {
      if (leaves[i].defined()) {
        all[i] = std::move(found[next++]);
      }
    }
    return all;
  }
  void release_variables() override {
    results.clear();
    leaves.clear();
  }
  [[nodiscard]] std::string name() const override { return what; }
};

std::vector<std::int64_t> versions_of(const Tensors& values, const NativeCode& code) {
  std::vector<std::int64_t> versions;
  for (const at::Tensor& value : values) {
    versions.push_back(value.defined() ? value._version() : 0);
  }
  for (const NamedTensor& parameter : code.parameters) {
    versions.push_back(parameter.tensor._version());
  }
  return versions;
}

/// Keeps NV-4.
Tensors forward(const std::string& what, const NativeCode& code, const Tensors& values) {
  const std::vector<std::int64_t> before = versions_of(values, code);
  Tensors results = code.forward(values);
  const std::vector<std::int64_t> after = versions_of(values, code);
  const auto changed =
      static_cast<std::size_t>(std::ranges::mismatch(before, after).in1 - before.begin());
  if (changed < before.size()) {
    throw Error(
        Errc::UsageArgument,
        fmt::format("the {} writes {} in place, which others read: write a clone() of it",
                    what,
                    changed < values.size()
                        ? fmt::format("its argument {}", changed)
                        : "its parameter " + code.parameters[changed - values.size()].name));
  }
  return results;
}

/// Returns the tensor as a leaf of the module's own graph.
at::Tensor leaf_of(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.detach().requires_grad_(tensor.requires_grad()) : tensor;
}

}  // namespace

void require_no_hooks(const std::string& name, const NativeCode& code) {
  for (const auto& [parameter, tensor] : code.parameters) {
    if (!autograd::impl::hooks(tensor).empty()) {
      throw Error(
          Errc::UsageArgument,
          fmt::format("the parameter {} of the native stage \"{}\" has a hook, which would be "
                      "called twice: register hooks in its forward, on other tensors",
                      parameter,
                      name));
    }
  }
}

void internal::refuse_undefined_result() {
  throw Error(Errc::UsageArgument, "the code returns an undefined tensor: return zeros");
}

std::string native_text(const std::string& name) {
  return fmt::format("native stage \"{}\"", name);
}

NativeCode driver_code(std::function<Tensors(const Tensors&)> call) {
  return {.parameters = {},
          .buffers = {},
          .forward = std::move(call),
          .trains = nullptr,
          .modes = nullptr,
          .set_modes = nullptr};
}

void NativeCode::train(bool training) const {
  if (trains && trains() != training) {
    set_modes(std::vector<bool>(modes().size(), training));
  }
}

Tensors run_native(const std::string& what,
                   const NativeCode& code,
                   const Tensors& values,
                   const Tensors& parameters) {
  if (!at::GradMode::is_enabled() || (std::ranges::none_of(values, needs_gradient) &&
                                      std::ranges::none_of(parameters, needs_gradient))) {
    Tensors results = forward(what, code, values);
    for (at::Tensor& result : results) {
      const bool given = std::ranges::any_of(
          values, [&](const at::Tensor& value) { return value.is_same(result); });
      // It is a value of its own, and no gradient flows to what only the code holds.
      result = given || result.requires_grad() ? result.detach() : result;
    }
    return results;
  }
  const std::shared_ptr<NativeNode> node(new NativeNode, autograd::deleteNode);
  node->what = what;
  autograd::edge_list edges;
  const auto join = [&](const at::Tensor& outer, const at::Tensor& leaf) {
    const bool joined = outer.defined() && outer.requires_grad();
    edges.push_back(joined ? autograd::impl::gradient_edge(outer) : autograd::Edge());
    node->leaves.push_back(joined ? leaf : at::Tensor());
  };
  Tensors inner;
  for (const at::Tensor& value : values) {
    inner.push_back(leaf_of(value));
    join(value, inner.back());
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    join(parameters[i], code.parameters[i].tensor);
  }
  node->set_next_edges(std::move(edges));
  Tensors joined;
  for (const at::Tensor& result : forward(what, code, inner)) {
    joined.push_back(result.detach());
    if (result.requires_grad()) {
      autograd::create_gradient_edge(joined.back(), node);
      node->results.push_back(result);
    }
  }
  return joined;
}

}  // namespace stagecraft
