#include "stagecraft/tools/train/record/run_identity.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft::tools {
namespace {

namespace fs = std::filesystem;

/// Returns the value, and the contents if it is a file.
std::string with_contents(const std::string& value, const std::string& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) {
    return value;
  }
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) {
    throw Error(Errc::UsageFile, fmt::format("'{}' cannot be read", path));
  }
  return "\n" + text;
}

std::string optional_text(const std::optional<std::int64_t>& number) {
  return number ? std::to_string(*number) : "";
}

void add_pipeline_identity(const PipelineOptions& o, RunIdentity& what) {
  what["--schedule"] = o.strategy ? "" : with_contents(o.schedule, o.schedule);
  what["--strategy"] = o.strategy ? with_contents(*o.strategy, *o.strategy) : "";
  what["--cut"] = o.cut && o.cut->starts_with('@') ? with_contents(*o.cut, o.cut->substr(1))
                                                   : o.cut.value_or("");
  for (const auto& [name, value] : o.set) {
    what["--set " + name] = value;
  }
  what["--dp"] = std::to_string(o.dp);
  what["--ep"] = std::to_string(o.ep);
  what["--zero"] = std::to_string(o.zero);
  what["--ranks"] = optional_text(o.ranks);
  what["--stages"] = optional_text(o.stages);
  what["--chunks"] = optional_text(o.chunks);
  what["--microbatches"] = optional_text(o.microbatches);
  what["--microbatch-size"] = optional_text(o.microbatch_size);
  what["--precision"] = word_of(o.precision);
}

}  // namespace

RunIdentity run_identity(const TrainOptions& options) {
  RunIdentity what;
  if (options.model.file) {
    what["--model-file"] = *options.model.file;
  } else {
    what["--model"] = options.model.name;
    for (const auto& [name, value] : options.model.sizes.values()) {
      what["--" + name] = fmt::format("{}", value);
    }
  }
  what["--plan"] = options.planner.name.value_or("");
  add_pipeline_identity(options.pipeline, what);
  return what;
}

}  // namespace stagecraft::tools
