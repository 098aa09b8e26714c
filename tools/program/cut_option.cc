#include "stagecraft/tools/program/cut_option.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/split.h"
#include "stagecraft/compiler/cut/cut_file.h"
#include "stagecraft/tools/common/number_text.h"

namespace stagecraft::tools {
namespace {

std::string text_in(const std::string& path) {
  std::error_code ignored;
  std::ifstream in(path, std::ios::binary);
  const bool is_file = in.is_open() && !std::filesystem::is_directory(path, ignored);
  std::string text = is_file ? std::string{std::istreambuf_iterator<char>(in), {}} : "";
  if (!is_file || in.bad()) {
    throw Error(Errc::UsageFile,
                fmt::format("--cut expects a readable file behind the @, found {}'{}'",
                            std::filesystem::exists(path, ignored) ? "" : "no file at ",
                            path));
  }
  return text;
}

}  // namespace

std::optional<Cut> cut_option(const std::optional<std::string>& words) {
  if (!words) {
    return std::nullopt;
  }
  if (words->starts_with('@')) {
    const std::string path = words->substr(1);
    return read_cut(text_in(path), path);
  }
  std::vector<std::string> places;
  for (const std::string_view place : split(*words, ',')) {
    if (place.empty()) {
      throw Error(Errc::UsageArgument,
                  fmt::format("--cut expects places such as layers.4,layers.8 or @FILE, found '{}'",
                              *words));
    }
    places.emplace_back(place);
  }
  return At(std::move(places));
}

std::optional<int> microbatch_size_of_cut(const std::optional<std::string>& words) {
  if (!words || !words->starts_with('@')) {
    return std::nullopt;
  }
  const std::string path = words->substr(1);
  return microbatch_size_in_cut(text_in(path), path);
}

std::optional<int> stages_of(const Cut& cut) {
  if (const auto* at = std::get_if<At>(&cut)) {
    return static_cast<int>(at->places.size()) + 1;
  }
  if (const auto* sets = std::get_if<OperatorSets>(&cut)) {
    return static_cast<int>(sets->stages.size());
  }
  if (const auto* balanced = std::get_if<Balanced>(&cut)) {
    return balanced->stages;
  }
  return std::nullopt;
}

nlohmann::ordered_json cut_json(const CutReport& cut) {
  nlohmann::ordered_json stages = nlohmann::ordered_json::array();
  for (const StageCut& stage : cut.stages) {
    stages.push_back({{"name", stage.name},
                      {"first_operator", stage.first},
                      {"operators", stage.operators},
                      {"place", stage.place},
                      {"seconds", stage.time},
                      {"parameter_bytes", number_json(stage.parameter_bytes)},
                      {"crossing_bytes", number_json(stage.crossing_bytes)}});
  }
  return stages;
}

}  // namespace stagecraft::tools
