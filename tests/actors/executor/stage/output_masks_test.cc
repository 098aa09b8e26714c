/// Tests halves of a backward on every LibTorch operator whose backward takes a mask that says what
/// to compute. Some kernels end the process on a mask that they do not support, so the operators
/// run in another process, which tells what it tries.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>
#include <torch/torch.h>

#include "stagecraft/actors/executor/stage/backward.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/environment_variable.h"

namespace stagecraft {
namespace {

using Tensors = std::vector<torch::Tensor>;

/// Says which inputs a tensor depends on that an operator reads.
enum class HangsOn { Nothing, Input, Parameter, Both };
constexpr std::array kAll{HangsOn::Nothing, HangsOn::Input, HangsOn::Parameter, HangsOn::Both};

std::string to_string(HangsOn of) {
  constexpr std::array kNames{"nothing", "input", "parameter", "both"};
  return kNames[static_cast<std::size_t>(of)];
}

struct Masked {
  std::string backward;  ///< as the dispatcher calls it
  Tensors arguments;     ///< the first in the memory format to try
  std::function<torch::Tensor(const Tensors&)> forward;
  /// LibTorch itself cannot differentiate it if the first argument needs no gradient.
  bool first_needs_gradient = false;
};

constexpr std::int64_t kChannels = 8;

Masked convolution(bool channels_last,
                   std::int64_t dimensions,
                   std::int64_t kernel,
                   std::int64_t groups,
                   bool transposed) {
  const auto n = static_cast<std::size_t>(dimensions);
  std::vector<std::int64_t> image{4, kChannels}, weight{kChannels, kChannels / groups};
  image.resize(2 + n, 6);
  weight.resize(2 + n, kernel);
  torch::Tensor x = torch::randn(image);
  if (channels_last && dimensions > 1) {
    x = x.contiguous(dimensions == 2 ? torch::MemoryFormat::ChannelsLast
                                     : torch::MemoryFormat::ChannelsLast3d);
  }
  const std::vector<std::int64_t> ones(n, 1), padding(n, kernel / 2), zeros(n, 0);
  return {"aten::convolution_backward",
          {x, torch::randn(weight), torch::randn({kChannels})},
          [=](const Tensors& a) {
            return torch::convolution(
                a[0], a[1], a[2], ones, padding, ones, transposed, zeros, groups);
          }};
}

Masked sampling(bool channels_last, std::int64_t mode) {
  torch::Tensor x = torch::randn({4, kChannels, 6, 6});
  return {"aten::grid_sampler_2d_backward",
          {channels_last ? x.contiguous(torch::MemoryFormat::ChannelsLast) : x,
           torch::rand({4, 6, 6, 2}) * 2 - 1},
          [mode](const Tensors& a) { return torch::grid_sampler(a[0], a[1], mode, 0, false); }};
}

using MakeMasked = std::function<Masked(bool channels_last)>;

/// If a kernel is chosen by sizes or by an argument, the operator appears once for each choice.
const std::map<std::string, MakeMasked>& operators() {
  const auto images = [](bool channels_last) {
    const torch::Tensor x = torch::randn({4, kChannels, 6, 6});
    return channels_last ? x.contiguous(torch::MemoryFormat::ChannelsLast) : x;
  };
  const auto volumes = [](bool channels_last) {
    const torch::Tensor x = torch::randn({2, kChannels, 4, 4, 4});
    return channels_last ? x.contiguous(torch::MemoryFormat::ChannelsLast3d) : x;
  };
  const auto vector = [] { return torch::randn({kChannels}); };
  const auto group_norm = [=](const torch::Tensor& x) {
    return Masked{"aten::native_group_norm_backward",
                  {x, vector(), vector()},
                  [](const Tensors& a) { return torch::group_norm(a[0], 2, a[1], a[2]); },
                  /*first_needs_gradient=*/true};
  };
  const auto batch_norm = [=](bool channels_last, bool training) {
    const torch::Tensor mean = torch::zeros({kChannels}), variance = torch::ones({kChannels});
    return Masked{
        "aten::native_batch_norm_backward",
        {images(channels_last), vector(), vector()},
        [=](const Tensors& a) {
          return torch::batch_norm(
              a[0], a[1], a[2], mean.clone(), variance.clone(), training, 0.1, 1e-5, false);
        }};
  };
  static const std::map<std::string, MakeMasked> all{
      {"convolution", [](bool last) { return convolution(last, 2, 3, 1, false); }},
      {"convolution of points", [](bool last) { return convolution(last, 2, 1, 1, false); }},
      {"convolution in depth", [](bool last) { return convolution(last, 2, 3, kChannels, false); }},
      {"transposed convolution", [](bool last) { return convolution(last, 2, 3, 1, true); }},
      {"convolution of rows", [](bool last) { return convolution(last, 1, 3, 1, false); }},
      {"convolution of volumes", [](bool last) { return convolution(last, 3, 3, 1, false); }},
      {"slow convolution",
       [=](bool) {  // LibTorch's own backward refuses channels-last memory
         return Masked{
             "aten::_slow_conv2d_backward.output_mask",
             {images(false), torch::randn({kChannels, kChannels, 3, 3}), vector()},
             [](const Tensors& a) {
               return torch::_slow_conv2d_forward(a[0], a[1], {3, 3}, a[2], {1, 1}, {1, 1});
             }};
       }},
      {"group norm", [=](bool last) { return group_norm(images(last)); }},
      {"group norm of volumes", [=](bool last) { return group_norm(volumes(last)); }},
      {"batch norm", [=](bool last) { return batch_norm(last, true); }},
      {"batch norm of running statistics", [=](bool last) { return batch_norm(last, false); }},
      {"batch norm with update",
       [=](bool last) {
         return Masked{
             "aten::batch_norm_backward", {images(last), vector(), vector()}, [](const Tensors& a) {
               torch::Tensor mean = torch::zeros({kChannels});
               torch::Tensor variance = torch::ones({kChannels});
               return std::get<0>(
                   torch::_batch_norm_with_update(a[0], a[1], a[2], mean, variance, 0.1, 1e-5));
             }};
       }},
      {"layer norm",
       [=](bool last) {
         return Masked{"aten::native_layer_norm_backward",
                       {images(last), torch::randn({6}), torch::randn({6})},
                       [](const Tensors& a) { return torch::layer_norm(a[0], {6}, a[1], a[2]); }};
       }},
      {"bilinear sampling", [](bool last) { return sampling(last, 0); }},
      {"nearest sampling", [](bool last) { return sampling(last, 1); }},
      {"bicubic sampling", [](bool last) { return sampling(last, 2); }},
      {"sampling of volumes",
       [=](bool last) {
         return Masked{
             "aten::grid_sampler_3d_backward",
             {volumes(last), torch::rand({2, 4, 4, 4, 3}) * 2 - 1},
             [](const Tensors& a) { return torch::grid_sampler(a[0], a[1], 0, 0, false); }};
       }},
  };
  return all;
}

/// Collects the names of operators that run on this thread while it lives.
class RanOperators {
 public:
  RanOperators() {
    handle_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback([](const at::RecordFunction& function)
                                       -> std::unique_ptr<at::ObserverContext> {
          names().insert(
              c10::toString(function.operator_name().value_or(c10::OperatorName("", ""))));
          return nullptr;
        }).scopes({at::RecordScope::FUNCTION}));
  }
  ~RanOperators() { at::removeCallback(handle_); }
  RanOperators(const RanOperators&) = delete;
  RanOperators& operator=(const RanOperators&) = delete;

  static std::set<std::string>& names() {
    static std::set<std::string> all;
    return all;
  }

 private:
  at::CallbackHandle handle_ = 0;
};

/// Holds a run of the forward, with the dependence of each argument.
struct MaskedRun {
  Saved saved;
  Tensors parameters;

  MaskedRun(const Masked& masked, const std::vector<HangsOn>& of) {
    Tensors arguments;
    for (std::size_t i = 0; i < of.size(); ++i) {
      torch::Tensor argument = masked.arguments[i].detach();
      if (of[i] == HangsOn::Input || of[i] == HangsOn::Both) {
        argument = argument.clone().requires_grad_();
        saved.leaves.push_back(argument);
        argument = argument * 2.0;
      }
      if (of[i] == HangsOn::Both) {
        parameters.push_back(torch::ones({1}).requires_grad_());
        argument = argument * parameters.back();
      } else if (of[i] == HangsOn::Parameter) {
        argument = argument.clone().requires_grad_();
        parameters.push_back(argument);
      }
      arguments.push_back(argument);
    }
    saved.outputs = {masked.forward(arguments)};
  }

  [[nodiscard]] std::vector<torch::autograd::Edge> edges() const {
    std::vector<torch::autograd::Edge> all;
    for (const torch::Tensor& parameter : parameters) {
      all.push_back(torch::autograd::impl::gradient_edge(parameter));
    }
    return all;
  }
};

void check_halves(const Masked& masked, const std::vector<HangsOn>& of) {
  MaskedRun whole(masked, of), split(masked, of);
  const torch::Tensor gradient = torch::ones_like(whole.saved.outputs[0]) + whole.saved.outputs[0];
  const Tensors gradients{gradient.detach()};
  const Gradients expected = backward(whole.saved, gradients, whole.edges());
  const Tensors inputs = backward_input(split.saved, gradients, split.edges());
  const Tensors parameters = backward_weight(split.saved, split.edges());
  REQUIRE(inputs.size() == expected.inputs.size());
  REQUIRE(parameters.size() == expected.parameters.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    CHECK(torch::equal(inputs[i], expected.inputs[i]));
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    CHECK(torch::equal(parameters[i], expected.parameters[i]));
  }
}

/// Checks it with every dependence that its arguments may have.
void check_operator(const Masked& masked) {
  const RanOperators ran;
  std::size_t cases = 1;
  for (std::size_t i = 0; i < masked.arguments.size(); ++i) {
    cases *= kAll.size();
  }
  for (std::size_t number = 0; number < cases; ++number) {
    std::vector<HangsOn> of;
    std::string told;
    for (std::size_t rest = number; of.size() < masked.arguments.size(); rest /= kAll.size()) {
      of.push_back(kAll[rest % kAll.size()]);
      told += (told.empty() ? "" : ", ") + to_string(of.back());
    }
    const auto hangs_on = [&](HangsOn what) {
      return std::ranges::any_of(of,
                                 [&](HangsOn one) { return one == what || one == HangsOn::Both; });
    };
    if (!hangs_on(HangsOn::Input) || !hangs_on(HangsOn::Parameter) ||
        (masked.first_needs_gradient && of.front() == HangsOn::Nothing)) {
      continue;
    }
    std::cout << "arguments that hang on " << told
              << std::endl;  // the last name is the operator that ended it
    CAPTURE(told);
    check_halves(masked, of);
  }
  CHECK(RanOperators::names().contains(masked.backward));
  RanOperators::names().clear();
}

constexpr const char* kOtherProcess = "STAGECRAFT_TESTS_OPERATORS";

TEST_CASE("halves of a backward have the bits of the whole, whatever an operator's mask is",
          "[executor][backward][output-masks]") {
  if (std::getenv(kOtherProcess) != nullptr) {
    for (const auto& [name, make] : operators()) {
      torch::manual_seed(0);
      for (const bool channels_last : {false, true}) {
        std::cout << name << (channels_last ? ", channels-last" : "") << std::endl;
        CAPTURE(name, channels_last);
        check_operator(make(channels_last));
      }
    }
    return;
  }
  const tests::EnvironmentVariable other(kOtherProcess, "1");
  const tests::CommandResult result = tests::run_command({"/proc/self/exe", "[output-masks]"});
  INFO(result.out << result.err);
  CHECK(result.exit_code == 0);
}

bool has_mask(const c10::FunctionSchema& schema) {
  return std::ranges::any_of(schema.arguments(), [](const c10::Argument& argument) {
    const auto list = argument.type()->cast<c10::ListType>();
    return list != nullptr && list->getElementType()->kind() == c10::TypeKind::BoolType;
  });
}

TEST_CASE("every operator with a mask that computes on the processor is tried in halves",
          "[executor][backward]") {
  std::set<std::string> known{
      // One belongs to second derivatives; one consists of others and is in no graph; two are for
      // other devices.
      "aten::_convolution_double_backward",
      "aten::_batch_norm_impl_index_backward",
      "aten::convolution_backward_overrideable",
      "aten::_scaled_dot_product_fused_attention_overrideable_backward"};
  torch::manual_seed(0);
  for (const auto& [name, make] : operators()) {
    known.insert(make(false).backward);
  }
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findSchema(name);
    if (!op || !has_mask(op->schema()) || name.overload_name.ends_with("out")) {
      continue;
    }
    const bool on_processor =
        op->hasKernelForDispatchKey(c10::DispatchKey::CPU) ||
        op->hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) ||
        op->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
    INFO(c10::toString(name) << ": add it to operators()");
    CHECK((!on_processor || known.contains(c10::toString(name))));
  }
}

}  // namespace
}  // namespace stagecraft
