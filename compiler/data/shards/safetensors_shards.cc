#include "stagecraft/compiler/data/shards/safetensors_shards.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/data/shards/stored_rows.h"
#include "stagecraft/compiler/tensor_files/safetensors.h"

namespace stagecraft {
namespace {

using Entries = std::map<std::string, SafetensorsEntry>;

/// Returns the names of the arguments in their order.
std::vector<std::string> arguments_in(const std::string& path,
                                      const Entries& entries,
                                      const std::vector<std::string>& inputs) {
  const auto there = [&](const std::string& name) { return entries.contains(name); };
  if (!inputs.empty() && std::ranges::all_of(inputs, there)) {
    return inputs;
  }
  std::vector<std::string> numbered;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    numbered.push_back(fmt::format("arg{}", i));
  }
  if (numbered.empty() || !std::ranges::all_of(numbered, there)) {
    std::vector<std::string> found;
    for (const auto& [name, entry] : entries) {
      found.push_back(name);
    }
    throw Error(Errc::UsageFile,
                fmt::format("{}: expected the tensors arg0, arg1, ... alone{}, found {}",
                            path,
                            inputs.empty() ? ""
                                           : fmt::format(", or those of the model's inputs, {}",
                                                         fmt::join(inputs, ", ")),
                            found.empty() ? "none" : fmt::format("{}", fmt::join(found, ", "))));
  }
  return numbered;
}

}  // namespace

std::vector<Shard> safetensors_shards(const std::string& folder,
                                      const std::vector<std::string>& names,
                                      const std::vector<std::string>& inputs) {
  std::vector<Shard> shards;
  for (const std::string& name : names) {
    const std::string path = folder + "/" + name;
    Entries entries;
    for (SafetensorsEntry& entry : read_safetensors_header(path)) {
      std::string key = entry.name;
      entries.emplace(std::move(key), std::move(entry));
    }
    Shard& shard = shards.emplace_back(Shard{.name = path});
    for (const std::string& argument : arguments_in(path, entries, inputs)) {
      const SafetensorsEntry& entry = entries.at(argument);
      add_argument(shard,
                   {.file = path,
                    .name = argument,
                    .begin = entry.begin,
                    .dtype = entry.dtype,
                    .sizes = entry.sizes});
    }
  }
  return shards;
}

}  // namespace stagecraft
