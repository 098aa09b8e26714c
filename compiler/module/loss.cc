#include "stagecraft/compiler/module/loss.h"

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft::internal {

Tensors arguments_of(const TakenNumbers& taken, const Tensors& outputs, const Tensors& labels) {
  if (taken.as_list && labels.empty()) {
    return outputs;
  }
  const auto takes = [&](std::size_t number) {
    return number <= kMostArguments && taken.one_by_one[number];
  };
  const bool all = takes(outputs.size() + labels.size());
  const bool first = takes(1 + labels.size());
  if (all && first && outputs.size() > 1) {
    throw Error(
        Errc::UsageArgument,
        fmt::format("the loss takes all {} outputs of the module with {} labels, and the first "
                    "output with them as well; choose with a loss of (const "
                    "std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& labels)",
                    outputs.size(),
                    labels.size()));
  }
  if (!all && !first) {
    throw Error(Errc::UsageArgument,
                fmt::format("the loss takes {}: the outputs, then the labels; the module returns "
                            "{}, CompileOptions::labels has {}: pass as many labels as the loss "
                            "reads",
                            to_string(taken),
                            outputs.size(),
                            labels.size()));
  }
  Tensors arguments(outputs.begin(), all ? outputs.end() : outputs.begin() + 1);
  arguments.insert(arguments.end(), labels.begin(), labels.end());
  return arguments;
}

void refuse_out_of_range(const char* what, const Tensors& outputs, const Tensors& labels) {
  throw Error(Errc::UsageArgument,
              fmt::format("the loss threw std::out_of_range ({}); perhaps it reads an output or a "
                          "label that does not exist: the module returns {}, "
                          "CompileOptions::labels has {}; pass as many labels as the loss reads",
                          what,
                          outputs.size(),
                          labels.size()));
}

}  // namespace stagecraft::internal
