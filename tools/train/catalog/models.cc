#include "stagecraft/tools/train/catalog/models.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/nearest.h"
#include "stagecraft/tools/train/models/clip.h"
#include "stagecraft/tools/train/models/llama.h"
#include "stagecraft/tools/train/models/moe.h"
#include "stagecraft/tools/train/models/unet.h"
#include "stagecraft/tools/train/models/vit.h"

namespace stagecraft::tools {
namespace {

const std::vector<ModelEntry>& table() {
  static const std::vector<ModelEntry> kTable{
      llama_entry(),
      moe_entry(),
      vit_entry(),
      unet_entry(),
      clip_entry(),
  };
  return kTable;
}

}  // namespace

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
                          names_of_models([](const ModelEntry&) { return true; }, "or"),
                          name.substr(0, 40),
                          did_you_mean(name, names)));
}

std::string names_of_models(const std::function<bool(const ModelEntry&)>& wanted,
                            std::string_view last_after) {
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
  return fmt::format("{} {} {}", fmt::join(names, ", "), last_after, last);
}

}  // namespace stagecraft::tools
