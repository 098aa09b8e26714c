#include "stagecraft/actors/executor/optimizer/master_weights.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/libtorch/half_type.h"

namespace stagecraft {
namespace {

/// Elements in float32 that suffice for a call of the optimizer. Parts end where LibTorch's vectors
/// do, so operators treat all elements as in the whole (BU-4).
constexpr std::int64_t kWidened = std::int64_t{1} << 20U;

/// Returns a flat part of a parameter with all that belongs to it.
OptimizedParameter flat_part(const OptimizedParameter& whole, std::int64_t begin) {
  const std::int64_t size = std::min(kWidened, whole.parameter.numel() - begin);
  const auto part = [&](const at::Tensor& t) { return t.view(-1).narrow(0, begin, size); };
  OptimizedParameter made{.parameter = part(whole.parameter),
                          .gradient = part(whole.gradient),
                          .master = part(whole.master),
                          .state = {},
                          .rule = whole.rule,
                          .name = whole.name};
  std::ranges::transform(whole.state, std::back_inserter(made.state), part);
  return made;
}

/// Returns the same with the master as the parameter.
OptimizedParameter widened(const OptimizedParameter& p) {
  return {.parameter = p.master,
          .gradient = p.gradient.to(p.master.scalar_type()),
          .master = {},
          .state = p.state,
          .rule = p.rule,
          .name = p.name};
}

}  // namespace

void check_master_weights(const std::vector<NamedTensor>& parameters) {
  const auto takes_master = [](const NamedTensor& parameter) {
    return parameter.tensor.requires_grad() && is_half_type(parameter.tensor.scalar_type());
  };
  if (std::ranges::none_of(parameters, takes_master)) {
    throw Error(Errc::UsageArgument,
                fmt::format("{} keeps float32 copies of parameters in bfloat16 or float16, and "
                            "none that trains is of these types: leave it out",
                            kOption))
        .about("master_weights");
  }
}

void update_through_masters(std::vector<OptimizedParameter>& parameters,
                            const UpdateNumbers& numbers,
                            bool whole,
                            const UpdateOf& update) {
  const auto has_master = [](const OptimizedParameter& p) { return p.master.defined(); };
  if (std::ranges::none_of(parameters, has_master)) {
    update(parameters);
    return;
  }
  std::vector<OptimizedParameter> others, parts, in_float;
  std::int64_t elements = 0;
  const auto update_parts = [&] {
    update(in_float);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      parts[i].parameter.copy_(in_float[i].parameter);  // keeps MWT-2
      parts[i].gradient.copy_(in_float[i].gradient);    // keeps OR-2
    }
    parts.clear();
    in_float.clear();
    elements = 0;
  };
  for (const OptimizedParameter& p : parameters) {
    if (!has_master(p) || numbers.of(p.rule.group) == 0) {
      others.push_back(p);
      continue;
    }
    const std::int64_t size = p.parameter.numel();
    for (std::int64_t begin = 0; begin < size; begin += whole ? size : kWidened) {
      parts.push_back(whole ? p : flat_part(p, begin));
      in_float.push_back(widened(parts.back()));
      elements += parts.back().parameter.numel();
      if (elements >= kWidened) {
        update_parts();  // keeps MWT-3
      }
    }
  }
  if (!parts.empty()) {
    update_parts();
  }
  if (!others.empty()) {
    update(others);
  }
}

}  // namespace stagecraft
