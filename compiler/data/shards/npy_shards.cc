#include "stagecraft/compiler/data/shards/npy_shards.h"

#include <charconv>
#include <map>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/data/shards/stored_rows.h"
#include "stagecraft/compiler/tensor_files/npy.h"

namespace stagecraft {
namespace {

constexpr std::string_view kNpyEnd = ".npy";
constexpr std::string_view kArgumentMark = "_arg";

[[noreturn]] void refuse_npy(const std::string& path, const std::string& what) {
  throw Error(Errc::UsageFile, fmt::format("{}: {}", path, what));
}

struct ShardPart {
  std::string shard;
  int argument = 0;
};

ShardPart part_of(const std::string& folder, const std::string& name) {
  const std::string stem = name.substr(0, name.size() - kNpyEnd.size());
  const std::size_t at = stem.rfind(kArgumentMark);
  const std::string digits = at == stem.npos ? "" : stem.substr(at + kArgumentMark.size());
  if (digits.empty() || digits.find_first_not_of("0123456789") != digits.npos) {
    return {.shard = stem};
  }
  ShardPart part{.shard = stem.substr(0, at)};
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), part.argument);
  if (error != std::errc() || fmt::format("{}", part.argument) != digits) {
    refuse_npy(
        folder + "/" + name,
        "expected a name like train_arg0.npy, whose number has no zeros in front; rename it");
  }
  return part;
}

StoredTensor rows_in(const std::string& path) {
  NpyHeader header = read_npy_header(path);
  if (header.columns_first && header.sizes.size() > 1) {
    refuse_npy(path,
               "expected rows first, found columns first, of which a step cannot read single "
               "samples; write numpy.ascontiguousarray(array)");
  }
  return {.file = path,
          .name = "",
          .begin = header.begin,
          .dtype = header.dtype,
          .sizes = std::move(header.sizes)};
}

}  // namespace

std::vector<Shard> npy_shards(const std::string& folder, const std::vector<std::string>& names) {
  std::map<std::string, std::map<int, std::string>> files;  // of each shard, by argument
  for (const std::string& name : names) {
    const ShardPart part = part_of(folder, name);
    const auto [known, added] = files[part.shard].emplace(part.argument, name);
    if (!added) {
      refuse_npy(folder + "/" + name,
                 fmt::format("expected one file of argument {} of shard {}, found {} too",
                             part.argument,
                             part.shard,
                             known->second));
    }
  }
  std::vector<Shard> shards;
  for (const auto& [name, parts] : files) {
    Shard& shard = shards.emplace_back(Shard{.name = folder + "/" + parts.begin()->second});
    int expected = 0;
    for (const auto& [argument, file] : parts) {
      if (argument != expected) {
        refuse_npy(fmt::format("{}/{}_arg{}.npy", folder, name, expected),
                   fmt::format("missing, although {} is there", file));
      }
      add_argument(shard, rows_in(folder + "/" + file));
      ++expected;
    }
  }
  return shards;
}

}  // namespace stagecraft
