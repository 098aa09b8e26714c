#include "stagecraft/examples/models/build_model.h"

#include <cmath>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#include "stagecraft/base/error.h"

namespace stagecraft::examples {
namespace {

constexpr double kInitialDeviation = 0.02;

double deviation_of(const at::Tensor& parameter, bool by_fan_in) {
  if (!by_fan_in) {
    return kInitialDeviation;
  }
  return 1.0 / std::sqrt(static_cast<double>(parameter.numel() / parameter.size(0)));
}

}  // namespace

void require_option(bool holds, const std::string& message) {
  if (!holds) {
    throw Error(Errc::UsageArgument, message);
  }
}

void require_stages(std::int64_t stages, std::int64_t pieces, const std::string& piece) {
  require_option(stages >= 1 && stages <= pieces,
                 "a stage holds at least one " + piece + "; found " + std::to_string(stages) +
                     " stages for " + std::to_string(pieces) + " " + piece + "s");
}

void require_patches(std::int64_t image, std::int64_t patch) {
  require_option(patch >= 1 && image >= patch && image % patch == 0,
                 "patches divide the image; found patches of " + std::to_string(patch) +
                     " in an image of " + std::to_string(image));
}

void require_heads(std::int64_t dim, std::int64_t heads) {
  require_option(heads >= 1 && dim % heads == 0,
                 "heads divide dim; found dim " + std::to_string(dim) + " and " +
                     std::to_string(heads) + " heads");
}

torch::nn::Linear unbiased(std::int64_t from, std::int64_t to) {
  return torch::nn::Linear(torch::nn::LinearOptions(from, to).bias(false));
}

torch::nn::LayerNorm layer_norm(std::int64_t dim) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({dim}));
}

void draw_weights(torch::nn::Module& module,
                  std::uint64_t seed,
                  std::uint64_t index,
                  bool by_fan_in) {
  const at::NoGradGuard no_grad;
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed * 10'000'019 + index);
  for (auto& item : module.named_parameters()) {
    at::Tensor& parameter = item.value();
    if (parameter.dim() > 1) {
      parameter.normal_(0.0, deviation_of(parameter, by_fan_in), generator);
    } else if (item.key().ends_with("bias")) {
      parameter.zero_();
    }
  }
}

std::vector<ItemRange> divided(const torch::nn::ModuleList& layers, std::int64_t stages) {
  std::vector<CutItem> items;
  for (const auto& layer : *layers) {
    CutItem item{.time = 0};
    for (const at::Tensor& parameter : layer->parameters()) {
      item.time += static_cast<double>(parameter.numel());
    }
    items.push_back(item);
  }
  return balanced_cut(items, static_cast<int>(stages));
}

}  // namespace stagecraft::examples
