#include "stagecraft/tools/import/model_report.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/base/count_text.h"
#include "stagecraft/compiler/import/model_text.h"
#include "stagecraft/compiler/libtorch/type_text.h"
#include "stagecraft/tools/common/command_json.h"
#include "stagecraft/tools/common/number_text.h"
#include "stagecraft/tools/common/table.h"
#include "stagecraft/tools/program/cut_option.h"

namespace stagecraft::tools {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string_view word_of(ModelMode mode) {
  switch (mode) {
    case ModelMode::Training:
      return "training";
    case ModelMode::Evaluation:
      return "evaluation";
    case ModelMode::Either:
      return "either";
  }
  return "";
}

/// Explains the mode of a file to its trainer.
std::string_view meaning_of(ModelMode mode) {
  switch (mode) {
    case ModelMode::Training:
      return "dropout is active, and batch norm uses and updates the statistics of microbatches; "
             "an evaluation turns dropout off and uses running statistics";
    case ModelMode::Evaluation:
      return "dropout is off and batch norm uses its stored statistics, also in training; to train "
             "with both active, write the file after model.train()";
    case ModelMode::Either:
      return "no operator depends on the mode";
  }
  return "";
}

std::string_view kind_of(ModelFormat format) {
  return format == ModelFormat::Exported ? "torch.export" : "TorchScript";
}

/// A tensor of the file under its first name; the other names are ties.
struct Owned {
  std::string name;
  at::Tensor tensor;
  std::vector<std::string> ties;
};

std::vector<Owned> owned(const std::vector<NamedTensor>& tensors) {
  std::vector<Owned> all;
  std::map<const void*, std::size_t> place;
  for (const NamedTensor& t : tensors) {
    const auto [found, added] = place.emplace(t.tensor.unsafeGetTensorImpl(), all.size());
    if (added) {
      all.push_back({t.name, t.tensor, {}});
    } else {
      all[found->second].ties.push_back(t.name);
    }
  }
  return all;
}

double bytes_of(const std::vector<Owned>& tensors) {
  double bytes = 0.0;
  for (const Owned& t : tensors) {
    bytes += static_cast<double>(t.tensor.nbytes());
  }
  return bytes;
}

std::vector<std::pair<std::string, int>> by_count(const ModelFile& model) {
  std::vector<std::pair<std::string, int>> all(model.operators.begin(), model.operators.end());
  std::ranges::stable_sort(all, std::greater(), &std::pair<std::string, int>::second);
  return all;
}

// ---- For people ---------------------------------------------------------------------------------

std::string weights_text(const std::string& what, const std::vector<Owned>& tensors) {
  std::string text = fmt::format("\n{}, {}{}\n",
                                 count_text(tensors.size(), what),
                                 bytes_text(bytes_of(tensors)),
                                 tensors.empty() ? "" : ":");
  std::vector<std::vector<std::string>> rows;
  for (const Owned& t : tensors) {
    std::string name = t.name;
    for (const std::string& tie : t.ties) {
      name += " = " + tie;
    }
    rows.push_back({name + (what == "parameter" && !t.tensor.requires_grad() ? " (frozen)" : ""),
                    type_text(t.tensor.scalar_type()),
                    shape_text(t.tensor.sizes().vec()),
                    bytes_text(static_cast<double>(t.tensor.nbytes()))});
  }
  return rows.empty() ? text : text + table_text({"name", "type", "shape", "bytes"}, rows);
}

std::string tensors_text(const std::string& what, const std::vector<ModelTensor>& tensors) {
  std::string text;
  for (const ModelTensor& t : tensors) {
    text += fmt::format("{:<12}{}: {}\n",
                        text.empty() ? what : "",
                        t.name,
                        t.known ? fmt::format("{} {}", type_text(t.dtype), shape_text(t.sizes))
                                : "type and shape as in the data");
  }
  return text;
}

std::string run_text(const ModelFile& model, const ModelReport& report) {
  if (report.ran) {
    return report.on_zeros ? "\nrun on zeros of its shapes: forward and backward are supported\n"
                           : "\nrun on step 0: forward and backward are supported\n";
  }
  if (!model.unsupported.empty()) {
    return "";
  }
  return "\neverything in the file is supported; --inputs DIR also checks what only a run shows\n";
}

// ---- For programs -------------------------------------------------------------------------------

OrderedJson weights_json(const std::vector<Owned>& tensors) {
  OrderedJson all = OrderedJson::array();
  for (const Owned& t : tensors) {
    OrderedJson one{{"name", t.name},
                    {"type", type_text(t.tensor.scalar_type())},
                    {"shape", t.tensor.sizes().vec()},
                    {"bytes", t.tensor.nbytes()},
                    {"trained", t.tensor.requires_grad()}};
    if (!t.ties.empty()) {
      one["ties"] = t.ties;
    }
    all.push_back(std::move(one));
  }
  return all;
}

OrderedJson tensors_json(const std::vector<ModelTensor>& tensors) {
  OrderedJson all = OrderedJson::array();
  for (const ModelTensor& t : tensors) {
    OrderedJson one{{"name", t.name}, {"type", nullptr}, {"shape", nullptr}};
    if (t.known) {
      one["type"] = type_text(t.dtype);
      one["shape"] = t.sizes;
    }
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace

std::string to_text(const ModelFile& model, const ModelReport& report) {
  std::string text = fmt::format("{}\n{:<12}{}{}\n{:<12}{}: {}\n",
                                 model.path,
                                 "kind",
                                 kind_of(model.format),
                                 model.written_by.empty() ? "" : ", of " + model.written_by,
                                 "mode",
                                 word_of(model.mode),
                                 meaning_of(model.mode));
  text += tensors_text("inputs", model.inputs) + tensors_text("outputs", model.outputs);
  text += weights_text("parameter", owned(model.parameters));
  text += weights_text("buffer", owned(model.buffers));
  std::vector<std::vector<std::string>> rows;
  std::size_t operators = 0;
  for (const auto& [name, count] : by_count(model)) {
    rows.push_back({name, std::to_string(count)});
    operators += static_cast<std::size_t>(count);
  }
  text += fmt::format(
      "\n{}:\n{}", count_text(operators, "operator"), table_text({"operator", "times"}, rows));
  if (!model.unsupported.empty()) {
    text += fmt::format("\nnot supported, {}:\n", count_text(model.unsupported.size(), "thing"));
    for (const Unsupported& u : model.unsupported) {
      text += "  " + to_string(u) + "\n";
    }
  }
  text += run_text(model, report);
  if (report.cut) {
    text += "\n" + to_string(*report.cut);
  }
  return text;
}

std::string to_json(const ModelFile& model, const ModelReport& report) {
  const std::vector<Owned> parameters = owned(model.parameters);
  const std::vector<Owned> buffers = owned(model.buffers);
  OrderedJson object{{"file", model.path},
                     {"kind", kind_of(model.format)},
                     {"written_by", model.written_by},
                     {"mode", word_of(model.mode)},
                     {"inputs", tensors_json(model.inputs)},
                     {"outputs", tensors_json(model.outputs)},
                     {"parameter_bytes", number_json(bytes_of(parameters))},
                     {"parameters", weights_json(parameters)},
                     {"buffer_bytes", number_json(bytes_of(buffers))},
                     {"buffers", weights_json(buffers)},
                     {"operators", OrderedJson::array()},
                     {"unsupported", OrderedJson::array()},
                     {"ran", report.ran}};
  for (const auto& [name, count] : by_count(model)) {
    object["operators"].push_back({{"name", name}, {"times", count}});
  }
  for (const Unsupported& u : model.unsupported) {
    object["unsupported"].push_back({{"node", u.node}, {"path", u.path}, {"why", u.why}});
  }
  if (report.cut) {
    object["measured_on"] = report.on_zeros ? "zeros" : "inputs";
    object["cut"] = cut_json(*report.cut);
  }
  return command_json("import", object);
}

}  // namespace stagecraft::tools
