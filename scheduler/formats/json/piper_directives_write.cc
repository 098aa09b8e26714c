#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "stagecraft/scheduler/formats/json/piper_directives.h"
#include "stagecraft/scheduler/formats/json/piper_words.h"

namespace stagecraft::formats {
namespace {

std::string in_quotes(std::string_view text) {
  using Json = nlohmann::json;
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string piper_filter_text(const PiperFilter& filter) {
  std::vector<std::string> tags;
  for (const PiperTag& tag : filter.tags) {
    tags.push_back(fmt::format(
        "{}: {}", in_quotes(tag.name), tag.number ? std::to_string(*tag.number) : "\"*\""));
  }
  if (filter.pass) {
    const auto* const pass =
        std::ranges::find(kPasses, *filter.pass, [](const auto& entry) { return entry.second; });
    tags.push_back(fmt::format(R"("{}": "{}")", kPassTag, pass->first));
  }
  return fmt::format("{{{}}}", fmt::join(tags, ", "));
}

std::string groups_text(const std::vector<std::vector<PiperFilter>>& groups) {
  std::string text;
  for (const std::vector<PiperFilter>& group : groups) {
    std::vector<std::string> filters;
    std::ranges::transform(group, std::back_inserter(filters), piper_filter_text);
    text += fmt::format("{}[{}]", text.empty() ? "" : ",\n    ", fmt::join(filters, ", "));
  }
  return "[\n    " + text + "]";
}

}  // namespace

std::string to_text(const PiperDirective& d) {
  std::string text = fmt::format(R"(  {{"op": {})", in_quotes(d.op));
  const auto add = [&](std::string_view key, const std::string& value, bool has = true) {
    text += has ? fmt::format(R"(, "{}": {})", key, value) : "";
  };
  if (d.op == "order") {
    add("filters", groups_text(d.groups));
    return text + "}";
  }
  add("filter", piper_filter_text(d.filter));
  add("devices", fmt::format("[{}]", fmt::join(d.devices, ", ")), !d.devices.empty());
  add("dim_name", in_quotes(d.dimension), !d.dimension.empty());
  add("num_microbatches", std::to_string(d.microbatches.value_or(1)), d.microbatches.has_value());
  add("stream", in_quotes(d.stream), !d.stream.empty());
  add("shard_params", "true", d.shard_params);
  add("shard_grads", "true", d.shard_grads);
  add("bucket_size", std::to_string(d.bucket_size.value_or(0)), d.bucket_size.has_value());
  add("gather_stream", in_quotes(d.gather_stream), !d.gather_stream.empty());
  add("reduce_stream", in_quotes(d.reduce_stream), !d.reduce_stream.empty());
  return text + "}";
}

}  // namespace stagecraft::formats
