#include "stagecraft/compiler/native/count.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <variant>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/library.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

thread_local StepCounts* counting = nullptr;

void add_to_step(const std::string& name, const at::Tensor& numbers) {
  if (counting != nullptr) {
    counting->add(name, numbers);
  }
}

}  // namespace

void count(std::string_view name, const at::Tensor& numbers) {
  const auto refuse = [&](const std::string& why) {
    throw Error(Errc::UsageArgument, fmt::format("sc::count(\"{}\"): {}", name, why));
  };
  if (name.empty()) {
    refuse("expected a name");
  }
  if (!numbers.defined() || c10::isComplexType(numbers.scalar_type())) {
    refuse("expected a tensor of real numbers");
  }
  if (numbers.numel() > kMostCounted) {
    refuse(fmt::format("expected at most {} numbers, found {}: count sums of them",
                       kMostCounted,
                       numbers.numel()));
  }
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow(kCountOperator.data(), "")
                             .typed<void(const std::string&, const at::Tensor&)>();
  op.call(std::string(name), numbers);
}

void add_count(Counts& sums, const std::string& name, const std::vector<double>& numbers) {
  std::vector<double>& sum = sums[name];
  sum.resize(std::max(sum.size(), numbers.size()));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    sum[i] += numbers[i];
  }
}

std::map<std::string, std::int64_t> counts_in(const Graph& graph) {
  std::map<std::string, std::int64_t> sizes;
  for (const Node& node : graph.nodes) {
    if (node.name != kCountOperator) {
      continue;
    }
    const std::string name = std::get<c10::IValue>(node.operands.at(0)).toStringRef();
    const std::int64_t size =
        c10::multiply_integers(graph.at(std::get<ValueId>(node.operands.at(1))).sizes);
    if (const auto [known, is_new] = sizes.try_emplace(name, size); known->second != size) {
      throw Error(Errc::CompileCapture,
                  fmt::format("sc::count(\"{}\") is called with {} numbers and with {}: calls "
                              "with one name add up, so give the other a name of its own",
                              name,
                              known->second,
                              size));
    }
  }
  return sizes;
}

void StepCounts::add(const std::string& name, const at::Tensor& numbers) {
  const at::NoGradGuard no_grad;
  // A copy: the caller may go on writing to its tensor.
  const at::Tensor more =
      numbers.detach().to(at::kDouble, /*non_blocking=*/false, /*copy=*/true).flatten();
  const auto [sum, is_new] = sums_.try_emplace(name, more);
  if (is_new) {
    return;
  }
  if (sum->second.numel() != more.numel()) {
    throw Error(Errc::UsageArgument,
                fmt::format("sc::count(\"{}\") is called with {} numbers and with {} in one step: "
                            "count sums that all microbatches have",
                            name,
                            sum->second.numel(),
                            more.numel()));
  }
  sum->second = sum->second.add(more);
}

Counts StepCounts::read() const {
  Counts counts;
  for (const auto& [name, sum] : sums_) {
    const at::Tensor here = sum.cpu().contiguous();
    const auto* const first = here.const_data_ptr<double>();
    counts[name].assign(first, first + here.numel());
  }
  return counts;
}

CountingScope::CountingScope(StepCounts& counts) : before_(std::exchange(counting, &counts)) {}

CountingScope::~CountingScope() {
  counting = before_;
}

}  // namespace stagecraft

TORCH_LIBRARY_FRAGMENT(stagecraft, m) {
  m.def("count(str name, Tensor numbers) -> ()", &stagecraft::add_to_step);
}
