#include "stagecraft/examples/models/build_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

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

std::vector<CutItem> items_of(const torch::nn::ModuleList& layers,
                              const std::vector<double>& uses) {
  std::vector<CutItem> items;
  for (const auto& layer : *layers) {
    CutItem item{.time = 0};
    for (const at::Tensor& parameter : layer->parameters()) {
      item.time += static_cast<double>(parameter.numel());
    }
    item.time *= uses.empty() ? 1 : uses[items.size()];
    items.push_back(item);
  }
  return items;
}

double time_of(const std::vector<CutItem>& items, const ItemRange& range) {
  double time = 0;
  for (std::size_t i = range.first; i < range.second; ++i) {
    time += items[i].time;
  }
  return time;
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
                     " stages where at most " + std::to_string(pieces) + " fit");
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

std::vector<ItemRange> divided(const torch::nn::ModuleList& layers,
                               std::int64_t stages,
                               const std::vector<double>& uses) {
  return balanced_cut(items_of(layers, uses), static_cast<int>(stages));
}

std::vector<TowerStage> divided_towers(const torch::nn::ModuleList& left,
                                       std::int64_t left_uses,
                                       const torch::nn::ModuleList& right,
                                       std::int64_t right_uses,
                                       std::int64_t stages) {
  if (stages == 1) {
    return {{.left = {0, left->size()}, .right = {0, right->size()}}};
  }
  const std::vector<CutItem> left_items =
      items_of(left, std::vector<double>(left->size(), static_cast<double>(left_uses)));
  const std::vector<CutItem> right_items =
      items_of(right, std::vector<double>(right->size(), static_cast<double>(right_uses)));
  const int parts = static_cast<int>(std::max<std::int64_t>(stages - 1, 2));  // of both towers
  double best = std::numeric_limits<double>::infinity();
  std::vector<TowerStage> chosen;
  for (int of_left = std::max(1, parts - static_cast<int>(right->size()));
       of_left < parts && of_left <= static_cast<int>(left->size());
       ++of_left) {
    std::vector<TowerStage> tried;
    double longest = 0;
    for (const ItemRange& range : balanced_cut(left_items, of_left)) {
      tried.push_back({.left = range});
      longest = std::max(longest, time_of(left_items, range));
    }
    for (const ItemRange& range : balanced_cut(right_items, parts - of_left)) {
      tried.push_back({.right = range});
      longest = std::max(longest, time_of(right_items, range));
    }
    if (longest < best) {
      best = longest;
      chosen = std::move(tried);
    }
  }
  chosen.resize(static_cast<std::size_t>(stages));
  return chosen;
}

}  // namespace stagecraft::examples
