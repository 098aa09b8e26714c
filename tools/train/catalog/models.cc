#include "stagecraft/tools/train/catalog/models.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/check.h"
#include "stagecraft/base/error.h"
#include "stagecraft/base/nearest.h"
#include "stagecraft/tools/train/catalog/entries.h"

namespace stagecraft::tools {
namespace {

const std::vector<ModelEntry>& table() {
  static const std::vector<ModelEntry> kTable{
      llama_entry(), moe_entry(), vit_entry(), unet_entry(), clip_entry()};
  return kTable;
}

}  // namespace

std::int64_t ModelSizes::whole(std::string_view name) const {
  return std::llround(real(name));
}

double ModelSizes::real(std::string_view name) const {
  const auto at = values_.find(name);
  SC_CHECK(at != values_.end(), fmt::format("no model has a size '{}'", name));
  return at->second;
}

std::span<const ModelEntry> models() {
  return table();
}

const ModelEntry& find_model(std::string_view name) {
  const auto found = std::ranges::find(table(), name, &ModelEntry::name);
  if (found != table().end()) {
    return *found;
  }
  std::vector<std::string> names;
  for (const ModelEntry& model : table()) {
    names.emplace_back(model.name);
  }
  throw Error(Errc::UsageArgument,
              fmt::format("--model expects {}, found '{}'; {}a model of your own is a file for "
                          "--model-file",
                          names_of_models([](const ModelEntry&) { return true; }),
                          name.substr(0, 40),
                          did_you_mean(name, names)));
}

std::string names_of_models(const std::function<bool(const ModelEntry&)>& wanted) {
  std::vector<std::string_view> names;
  for (const ModelEntry& model : table()) {
    if (wanted(model)) {
      names.push_back(model.name);
    }
  }
  if (names.size() < 2) {
    return names.empty() ? "none" : std::string(names.front());
  }
  const std::string_view last = names.back();
  names.pop_back();
  return fmt::format("{} and {}", fmt::join(names, ", "), last);
}

std::string wrong_heads(const ModelSizes& sizes) {
  const std::int64_t dim = sizes.whole("dim"), heads = sizes.whole("heads");
  return dim % heads == 0
             ? std::string()
             : fmt::format("--heads expects a divisor of --dim {}, found {}", dim, heads);
}

std::string wrong_patches_or_heads(const ModelSizes& sizes) {
  const std::int64_t image = sizes.whole("image"), patch = sizes.whole("patch");
  return image % patch == 0
             ? wrong_heads(sizes)
             : fmt::format("--patch expects a divisor of --image {}, found {}", image, patch);
}

std::string wrong_heads_of_rotated_pairs(const ModelSizes& sizes) {
  const std::int64_t width = sizes.whole("dim") / sizes.whole("heads");
  const std::string wrong = wrong_heads(sizes);
  return wrong.empty() && width % 2 != 0
             ? fmt::format(
                   "--dim / --heads expects an even number (the rotary embedding turns "
                   "pairs), found {}",
                   width)
             : wrong;
}

}  // namespace stagecraft::tools
