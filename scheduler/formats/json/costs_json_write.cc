#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/scheduler/formats/json/costs_fields.h"
#include "stagecraft/scheduler/formats/json/costs_json.h"

namespace stagecraft {
namespace {

using formats::BytesField;
using formats::kBytes;
using formats::KindField;
using formats::kKinds;
using formats::kOperator;
using formats::OperatorField;

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x20) {
      out += fmt::format("\\u{:04x}", code);
      continue;
    }
    out += c == '"' || c == '\\' ? "\\" : "";
    out += c;
  }
  return out + '"';
}

/// Returns whether any stage recomputes. If none does, the field is left out.
bool recomputes(const StageCosts& costs) {
  return costs.usual.recompute != 0 ||
         std::ranges::any_of(costs.each, [](const Durations& d) { return d.recompute != 0; });
}

std::string durations_text(const Durations& durations, bool with_recompute) {
  std::vector<std::string> parts;
  for (const KindField& kind : kKinds) {
    if (with_recompute || kind.duration != &Durations::recompute) {
      parts.push_back(fmt::format(R"("{}": {})", kind.name, durations.*kind.duration));
    }
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::vector<std::string> operator_lines(const std::vector<OperatorCost>& operators) {
  std::vector<std::string> lines;
  for (const OperatorCost& cost : operators) {
    std::string line = fmt::format(R"({{"id": {}, "name": {})", cost.id, json_text(cost.name));
    if (cost.stage != kNoStage) {
      line += fmt::format(R"(, "stage": {})", cost.stage.value);
    }
    for (const OperatorField& field : kOperator) {
      line += fmt::format(R"(, "{}": {})", field.name, cost.*field.value);
    }
    std::vector<std::string> reads, parameters;
    for (const OperatorRead& read : cost.reads) {
      reads.push_back(fmt::format(
          R"({{"from": {}, "output": {}, "bytes": {}}})", read.producer, read.output, read.bytes));
    }
    std::ranges::transform(cost.parameters, std::back_inserter(parameters), json_text);
    if (!reads.empty()) {
      line += fmt::format(R"(, "reads": [{}])", fmt::join(reads, ", "));
    }
    if (!parameters.empty()) {
      line += fmt::format(R"(, "parameters": [{}])", fmt::join(parameters, ", "));
    }
    line += cost.joined ? R"(, "joined": true)" : "";
    lines.push_back(line + '}');
  }
  return lines;
}

std::vector<std::string> stage_lines(const StageCosts& costs) {
  std::size_t stages = costs.each.size();
  for (const BytesField& field : kBytes) {
    stages = std::max(stages, (costs.memory.*field.bytes).size());
  }
  std::vector<std::string> lines;
  for (std::size_t s = 0; s < stages; ++s) {
    std::string line = fmt::format(R"({{"stage": {})", s);
    if (s < costs.each.size()) {
      line += ", " + durations_text(costs.each[s], recomputes(costs));
    }
    for (const BytesField& field : kBytes) {
      const std::vector<double>& bytes = costs.memory.*field.bytes;
      if (s < bytes.size()) {
        line += fmt::format(R"(, "{}": {})", field.name, bytes[s]);
      }
    }
    lines.push_back(line + '}');
  }
  return lines;
}

/// `otherwise`: the bandwidth that a reader assumes.
std::string link_text(const Link& link, double otherwise) {
  std::string text = fmt::format(R"("latency": {})", link.latency);
  if (std::isfinite(link.bandwidth)) {
    text += fmt::format(R"(, "bandwidth": {})", link.bandwidth);
  } else if (std::isfinite(otherwise)) {
    text += R"(, "bandwidth": null)";
  }
  return text;
}

/// Appends ",\n<indent>"name": [...]" with one entry per line, or nothing for no lines.
void add_list(std::string& text,
              std::string_view indent,
              std::string_view name,
              const std::vector<std::string>& lines) {
  if (!lines.empty()) {
    text += fmt::format(
        ",\n{}\"{}\": [{}]", indent, name, fmt::join(lines, fmt::format(",\n{} ", indent)));
  }
}

std::string stages_text(const StageCosts& costs) {
  std::string text =
      fmt::format(R"({{"usual": {{{}}})", durations_text(costs.usual, recomputes(costs)));
  add_list(text, "  ", "each", stage_lines(costs));
  if (costs.group) {
    text += fmt::format(",\n  \"group\": {}", *costs.group);
  }
  std::vector<std::string> groups;
  for (const auto& [stages, duration] : costs.groups) {
    groups.push_back(fmt::format(
        R"({{"stages": [{}, {}], "duration": {}}})", stages.first, stages.second, duration));
  }
  add_list(text, "  ", "groups", groups);
  return text + fmt::format(",\n  \"input_release\": {}}}", costs.memory.input_release);
}

std::string links_text(const LinkCosts& costs) {
  std::string text = fmt::format(R"({{"usual": {{{}}})",
                                 link_text(costs.usual, std::numeric_limits<double>::infinity()));
  if (costs.sums) {
    text += fmt::format(R"(, "sums": {{{}}})", link_text(*costs.sums, costs.usual.bandwidth));
  }
  std::vector<std::string> each, edges;
  for (const auto& [ends, link] : costs.each) {
    each.push_back(fmt::format(R"({{"from": {}, "to": {}, {}}})",
                               ends.first,
                               ends.second,
                               link_text(link, costs.usual.bandwidth)));
  }
  for (const auto& [ends, bytes] : costs.edge_bytes) {
    edges.push_back(
        fmt::format(R"({{"from": {}, "to": {}, "bytes": {}}})", ends.first, ends.second, bytes));
  }
  add_list(text, "  ", "each", each);
  text += fmt::format(",\n  \"edge_bytes\": {}", costs.bytes);
  add_list(text, "  ", "edges", edges);
  return text + '}';
}

std::string device_text(const CostDevice& device) {
  std::string text =
      fmt::format(R"({{"name": {}, "threads": {})", json_text(device.name), device.threads);
  if (device.processors > 0) {
    text += fmt::format(R"(, "processors": {})", device.processors);
  }
  for (const auto& [name, value] : {std::pair{"noise", device.noise},
                                    std::pair{"task", device.task},
                                    std::pair{"step", device.step}}) {
    if (value > 0) {
      text += fmt::format(R"(, "{}": {})", name, value);
    }
  }
  for (const auto& [name, times] :
       {std::pair{"split", device.split}, std::pair{"split_bytes", device.split_bytes}}) {
    if (times != 1) {
      text += fmt::format(R"(, "{}": {})", name, times);
    }
  }
  if (!device.precision.empty()) {
    text += fmt::format(R"(, "precision": {})", json_text(device.precision));
  }
  return text + '}';
}

std::vector<std::string> devices_lines(const std::map<int, DeviceTraits>& devices) {
  std::vector<std::string> lines;
  for (const auto& [rank, traits] : devices) {
    std::string line = fmt::format(R"({{"device": {}, "speed": {})", rank, traits.speed);
    if (std::isfinite(traits.memory)) {
      line += fmt::format(R"(, "memory": {})", traits.memory);
    }
    lines.push_back(line + '}');
  }
  return lines;
}

}  // namespace

std::string to_json(const Costs& costs) {
  std::string text =
      fmt::format("{{\"version\": {},\n \"device\": {}", kCostsVersion, device_text(costs.device));
  add_list(text, " ", "devices", devices_lines(costs.devices));
  add_list(text, " ", "operators", operator_lines(costs.operators));
  if (!costs.operators.empty()) {
    text += fmt::format(",\n \"samples\": {}", costs.samples);
  }
  if (costs.batch != 0) {
    text += fmt::format(",\n \"batch\": {}", costs.batch);
  }
  std::vector<std::string> sizes, parameters;
  for (const auto& [samples, operators] : costs.operators_at) {
    std::string size = fmt::format(R"({{"samples": {})", samples);
    add_list(size, "  ", "operators", operator_lines(operators));
    sizes.push_back(size + '}');
  }
  for (const ParameterCost& cost : costs.parameters) {
    parameters.push_back(fmt::format(
        R"({{"name": {}, "bytes": {}, "held": {}}})", json_text(cost.name), cost.bytes, cost.held));
  }
  add_list(text, " ", "sizes", sizes);
  add_list(text, " ", "parameters", parameters);
  text += fmt::format(",\n \"stages\": {}", stages_text(costs.stages));
  text += fmt::format(",\n \"links\": {}}}\n", links_text(costs.links));
  return text;
}

}  // namespace stagecraft
