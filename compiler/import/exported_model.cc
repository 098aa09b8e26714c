#include "stagecraft/compiler/import/exported_model.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/clone.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/import/exported/exported_graph.h"
#include "stagecraft/compiler/import/exported/exported_json.h"
#include "stagecraft/compiler/import/exported/exported_tensors.h"
#include "stagecraft/compiler/libtorch/type_text.h"

namespace stagecraft {
namespace {

using exported::InputKind;
using exported::OutputKind;

constexpr std::string_view kFormat = "archive_format";

/// Runnable holds everything that a run needs. It is immutable except for the tensors: the program
/// writes its buffers.
struct Runnable {
  struct Input {
    InputKind kind = InputKind::User;
    std::size_t position = 0;  ///< among the user's inputs
    at::Tensor tensor;         ///< of a parameter, buffer or constant
    bool written_constant = false;
  };
  struct Write {
    std::size_t output = 0;
    at::Tensor buffer;      ///< undefined if an input is written
    std::size_t input = 0;  ///< among the user's inputs
  };

  exported::ExportedGraph graph;
  std::vector<Input> inputs;
  std::vector<std::size_t> outputs;  ///< the graph outputs that the model returns, the loss first
  std::vector<Write> writes;
  std::vector<ModelTensor> expected;

  void check_inputs(const Tensors& given) const;
  [[nodiscard]] Tensors run(const Tensors& given) const;
};

bool fits(const ModelTensor& expected, const at::Tensor& found) {
  if (found.scalar_type() != expected.dtype || found.sizes().size() != expected.sizes.size()) {
    return false;
  }
  for (std::size_t i = 0; i < expected.sizes.size(); ++i) {
    if (expected.sizes[i] != exported::kUnknownSize && expected.sizes[i] != found.sizes()[i]) {
      return false;
    }
  }
  return true;
}

/// The operators hold fixed sizes. For inputs of other sizes they would fail late or return wrong
/// results.
void Runnable::check_inputs(const Tensors& given) const {
  if (given.size() != expected.size()) {
    throw Error(
        Errc::UsageArgument,
        fmt::format(
            "the exported program takes {} inputs, found {}", expected.size(), given.size()));
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (!fits(expected[i], given[i])) {
      throw Error(Errc::CompileShape,
                  fmt::format("input {} ({}) of one microbatch: the program was exported for {} of "
                              "shape [{}], found {} of shape [{}]; give it that, or export it with "
                              "dynamic_shapes",
                              i,
                              expected[i].name,
                              type_text(expected[i].dtype),
                              fmt::join(expected[i].sizes, ", "),
                              type_text(given[i].scalar_type()),
                              fmt::join(given[i].sizes(), ", ")));
    }
  }
}

Tensors Runnable::run(const Tensors& given) const {
  check_inputs(given);
  std::vector<c10::IValue> arguments;
  arguments.reserve(inputs.size());
  for (const Input& input : inputs) {
    if (input.kind == InputKind::User) {
      arguments.emplace_back(given[input.position]);
    } else if (input.written_constant) {
      arguments.emplace_back(at::clone(input.tensor));  // the next run must not see its writes
    } else {
      arguments.emplace_back(input.tensor);
    }
  }
  const std::vector<c10::IValue> made = graph.run(std::move(arguments));
  for (const Write& write : writes) {
    const at::NoGradGuard no_grad;
    at::Tensor to = write.buffer.defined() ? write.buffer : given[write.input];
    to.copy_(made[write.output].toTensor());
  }
  Tensors result;
  for (const std::size_t output : outputs) {
    if (made[output].isTensor()) {
      result.push_back(made[output].toTensor());
    }
  }
  return result;
}

/// Returns the name of the one program in the archive.
std::string program_name(const Archive& archive) {
  constexpr std::string_view kFolder = "models/";
  constexpr std::string_view kEnd = ".json";
  std::vector<std::string> names;
  for (const std::string& record : archive.records()) {
    if (record.starts_with(kFolder) && record.ends_with(kEnd) &&
        record.size() > kFolder.size() + kEnd.size()) {
      names.push_back(record.substr(kFolder.size(), record.size() - kFolder.size() - kEnd.size()));
    }
  }
  if (names.empty()) {
    archive.refuse(
        "expected a program in models/model.json, found none: saving it failed half-way, or it was "
        "compiled (AOTInductor), which cannot be trained");
  }
  if (names.size() > 1) {
    archive.refuse(
        fmt::format("expected one program, found {} ({}); save each in a file of its own",
                    names.size(),
                    fmt::join(names, ", ")));
  }
  return names.front();
}

void check_container(Archive& archive) {
  const auto check = [&](const std::string& record, std::string_view expected) {
    if (!archive.has(record)) {
      return;
    }
    const std::string found = archive.text(record);
    if (found != expected) {
      archive.refuse(
          fmt::format("{}: expected \"{}\", found \"{}\"", record, expected, found.substr(0, 40)));
    }
  };
  check(std::string(kFormat), "pt2");
  check("archive_version", "0");
  check("byteorder", "little");
}

/// Adds the record's name to errors in its JSON.
template <class F>
auto read_json(Archive& archive, const std::string& record, F&& read) {
  const std::string text = archive.text(record);
  try {
    return read(text);
  } catch (const Error& e) {
    if (e.code() != Errc::UsageFile) {
      throw;
    }
    archive.refuse(fmt::format("{}, {}", record, e.message()));
  }
}

exported::Payloads payloads(Archive& archive, const std::string& record, bool needed) {
  if (!needed && !archive.has(record)) {
    return {};
  }
  return read_json(archive, record, exported::read_payloads);
}

/// Reader combines the program's signature with its tensors.
class Reader {
 public:
  explicit Reader(Archive& archive) : archive_(archive) {}

  ModelFile read() {
    check_container(archive_);
    const std::string name = program_name(archive_);
    if (archive_.has("data/weights/" + name + ".pt")) {
      archive_.refuse(
          "its weights are one pickle, as torch before 2.9 wrote them; export the model again with "
          "torch 2.11");
    }
    program_ = read_json(archive_, "models/" + name + ".json", exported::read_program);
    weights_.emplace(
        archive_,
        payloads(archive_, fmt::format("data/weights/{}_weights_config.json", name), true),
        "data/weights/");
    constants_.emplace(
        archive_,
        payloads(archive_, fmt::format("data/constants/{}_constants_config.json", name), false),
        "data/constants/");
    model_.path = archive_.name();
    model_.format = ModelFormat::Exported;
    model_.written_by = program_.torch_version.empty() ? "" : "torch " + program_.torch_version;
    read_inputs();
    bind();
    read_outputs();
    check_writes();
    finish();
    return std::move(model_);
  }

 private:
  exported::ExportedTensors& home_of(const exported::InputSpec& spec) {
    const bool constant = spec.kind == InputKind::Constant || !spec.persistent;
    auto& expected = constant ? *constants_ : *weights_;
    auto& other = constant ? *weights_ : *constants_;
    return expected.has(spec.fqn) || !other.has(spec.fqn) ? expected : other;
  }

  void read_inputs() {
    for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
      const exported::InputSpec& spec = program_.inputs[i];
      const auto* value = std::get_if<exported::ValueName>(&program_.graph.inputs[i].value);
      Runnable::Input input{.kind = spec.kind};
      switch (spec.kind) {
        case InputKind::User:
          if (value == nullptr) {
            input.kind = InputKind::Baked;  // a number that was given at export
          } else {
            input.position = model_.inputs.size();
            add_user_input(value->name);
          }
          break;
        case InputKind::Parameter:
          input.tensor = home_of(spec).take(spec.fqn);
          model_.parameters.push_back({spec.fqn, input.tensor});
          break;
        case InputKind::Buffer:
          input.tensor = home_of(spec).take(spec.fqn);
          model_.buffers.push_back({spec.fqn, input.tensor});
          break;
        case InputKind::Constant:
          input.tensor = home_of(spec).take(spec.fqn);
          break;
        case InputKind::Baked:
          break;
        case InputKind::Refused:
          model_.unsupported.push_back({{}, {}, fmt::format("the program takes {}", spec.fqn)});
          break;
      }
      inputs_.push_back(std::move(input));
    }
  }

  void add_user_input(const std::string& name) {
    const auto facts = program_.graph.tensors.find(name);
    if (facts == program_.graph.tensors.end()) {
      model_.unsupported.push_back(
          {{}, {}, fmt::format("the input {} is a number, not a tensor; make it one", name)});
      model_.inputs.push_back({.name = name});
      return;
    }
    model_.inputs.push_back(
        {.name = name, .known = true, .dtype = facts->second.dtype, .sizes = facts->second.sizes});
  }

  void bind() {
    exported::ExportedGraph::InputFacts facts;
    for (const Runnable::Input& input : inputs_) {
      // A buffer may be the same in every run. Capture decides, since it knows its writers.
      facts.dependent.push_back(input.kind != InputKind::Constant &&
                                input.kind != InputKind::Baked && input.kind != InputKind::Buffer);
    }
    try {
      graph_.emplace(program_.graph, facts, model_.unsupported);
    } catch (const Error& e) {
      archive_.refuse(e.message());
    }
    model_.operators = graph_->operators();
    if (graph_->some_train()) {
      model_.mode = ModelMode::Training;
    } else if (graph_->some_evaluate()) {
      model_.mode = ModelMode::Evaluation;
    }
  }

  void read_outputs() {
    std::optional<std::size_t> loss;
    for (std::size_t i = 0; i < program_.outputs.size(); ++i) {
      const exported::OutputSpec& spec = program_.outputs[i];
      const exported::Argument& argument = program_.graph.outputs[i];
      if (std::holds_alternative<exported::List>(argument.value)) {
        archive_.refuse(fmt::format("output {} is a list; outputs are single values", i));
      }
      switch (spec.kind) {
        case OutputKind::Loss:
          loss = outputs_.size();
          [[fallthrough]];
        case OutputKind::User:
          add_output(i, argument);
          break;
        case OutputKind::BufferWrite:
          writes_.push_back({i, buffer(spec.target), 0});
          break;
        case OutputKind::InputWrite:
          writes_.push_back({i, {}, user_input(spec.target)});
          break;
        case OutputKind::Refused:
          model_.unsupported.push_back({{}, {}, spec.target});
          break;
      }
    }
    if (loss) {
      std::rotate(outputs_.begin(),
                  outputs_.begin() + static_cast<std::ptrdiff_t>(*loss),
                  outputs_.begin() + static_cast<std::ptrdiff_t>(*loss) + 1);
      std::rotate(model_.outputs.begin(),
                  model_.outputs.begin() + static_cast<std::ptrdiff_t>(*loss),
                  model_.outputs.begin() + static_cast<std::ptrdiff_t>(*loss) + 1);
    }
    if (outputs_.empty()) {
      model_.unsupported.push_back({{}, {}, "the program returns no tensor; return the loss"});
    }
  }

  /// Adds an output if it is a tensor. Training has no use for others (None, a number).
  void add_output(std::size_t i, const exported::Argument& argument) {
    const auto* value = std::get_if<exported::ValueName>(&argument.value);
    const auto facts =
        value == nullptr ? program_.graph.tensors.end() : program_.graph.tensors.find(value->name);
    if (facts != program_.graph.tensors.end()) {
      outputs_.push_back(i);
      model_.outputs.push_back({.name = value->name,
                                .known = true,
                                .dtype = facts->second.dtype,
                                .sizes = facts->second.sizes});
    }
  }

  at::Tensor buffer(const std::string& name) const {
    const auto found = std::ranges::find(model_.buffers, name, &NamedTensor::name);
    if (found == model_.buffers.end()) {
      archive_.refuse(
          fmt::format("an output is written to {}, which is not one of the buffers", name));
    }
    return found->tensor;
  }

  std::size_t user_input(const std::string& name) const {
    const auto found = std::ranges::find(model_.inputs, name, &ModelTensor::name);
    if (found == model_.inputs.end()) {
      archive_.refuse(
          fmt::format("an output is written to {}, which is not one of the inputs", name));
    }
    return static_cast<std::size_t>(found - model_.inputs.begin());
  }

  void check_writes() {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (!graph_->written_inputs()[i]) {
        continue;
      }
      if (inputs_[i].kind == InputKind::Parameter) {
        model_.unsupported.push_back(
            {{},
             {},
             fmt::format(
                 "the model writes the parameter {}; only the optimizer may: make it a buffer, or "
                 "write a clone() of it",
                 program_.inputs[i].fqn)});
      }
      inputs_[i].written_constant = inputs_[i].kind == InputKind::Constant;
    }
  }

  void finish() {
    auto runnable = std::make_shared<Runnable>(Runnable{std::move(*graph_),
                                                        std::move(inputs_),
                                                        std::move(outputs_),
                                                        std::move(writes_),
                                                        model_.inputs});
    model_.workload = {
        .forward = [runnable](const Tensors& given) { return runnable->run(given); },
        .loss = [](const Tensors& outputs, const Tensors& /*labels*/) { return outputs.at(0); },
        .parameters = model_.parameters,
        .buffers = model_.buffers};
  }

  Archive& archive_;
  exported::Program program_;
  std::optional<exported::ExportedTensors> weights_, constants_;
  ModelFile model_;
  std::vector<Runnable::Input> inputs_;
  std::vector<std::size_t> outputs_;
  std::vector<Runnable::Write> writes_;
  std::optional<exported::ExportedGraph> graph_;
};

}  // namespace

bool is_exported_model(const Archive& archive) {
  return archive.has(std::string(kFormat)) || archive.has("models/model.json");
}

ModelFile exported_model(Archive& archive) {
  return Reader(archive).read();
}

}  // namespace stagecraft
