#include "stagecraft/actors/trainer/state/checkpoint.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/actors/executor/optimizer/state_names.h"
#include "stagecraft/base/check.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/libtorch/type_text.h"

namespace stagecraft {
namespace {

// ---- which tensors can be saved -----------------------------------------------------------------

[[noreturn]] void refuse_tensor(const std::string& name, std::string_view why) {
  throw Error(Errc::CheckpointFormat,
              fmt::format("a checkpoint keeps dense tensors of plain numbers, {} is {}; register "
                          "its parts as buffers, or leave it unregistered",
                          name,
                          why));
}

/// Returns why a checkpoint cannot hold the tensor: it must be plain numbers in this machine's
/// memory.
std::optional<std::string_view> obstacle(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    return "undefined";
  }
  if (tensor.layout() != at::kStrided || tensor.is_nested()) {
    return "sparse, nested or otherwise not dense";
  }
  if (tensor.is_quantized() || !type_named(c10::toString(tensor.scalar_type()))) {
    return "quantized";
  }
  if (!tensor.device().is_cpu() || tensor._is_zerotensor()) {
    return "not in the memory of this machine";
  }
  return std::nullopt;
}

/// Errors: CheckpointFormat.
void require_plain(const std::string& name, const at::Tensor& tensor) {
  if (const auto why = obstacle(tensor)) {
    refuse_tensor(name, *why);
  }
}

std::string stored_type(const at::Tensor& tensor) {
  return c10::toString(tensor.scalar_type());
}

/// Returns the tensor with its elements in order and resolved: a conjugate view must not be written
/// as the tensor that it is a view of.
at::Tensor in_order(const at::Tensor& tensor) {
  return tensor.detach().resolve_conj().resolve_neg().contiguous();
}

/// Returns the header. Errors: CheckpointFormat if a type in it is quantized.
CheckpointHeader with_plain_types(CheckpointHeader header) {
  for (const TensorEntry& entry : header.tensors) {
    if (!type_named(entry.type)) {
      refuse_tensor(entry.name, "quantized");
    }
  }
  return header;
}

std::span<const char> bytes_of_tensor(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

// ---- comparing ----------------------------------------------------------------------------------

std::string shape_text(std::string_view type, at::IntArrayRef shape) {
  const auto known = type_named(type);
  return fmt::format(
      "{} [{}]", known ? type_text(*known) : std::string(type), fmt::join(shape, ", "));
}

/// Returns "parameter a.weight" for "weight:a.weight".
std::string tensor_text(std::string_view name) {
  const std::size_t colon = name.find(':');
  const std::string_view kind = name.starts_with(kWeight) ? "parameter" : name.substr(0, colon);
  return colon == std::string_view::npos ? std::string(name)
                                         : fmt::format("{} {}", kind, name.substr(colon + 1));
}

[[noreturn]] void throw_other_model(const std::string& what) {
  throw Error(Errc::CheckpointMismatch, "the checkpoint is of another model" + what)
      .advise("load it with the model, optimizer and frozen parameters that it was saved with");
}

bool has_masters(const std::vector<TensorEntry>& tensors) {
  return std::ranges::any_of(
      tensors, [](const TensorEntry& entry) { return entry.name.starts_with(kMaster); });
}

/// Their types would differ in all of the optimizer's state. Errors: CheckpointMismatch.
void check_same_masters(const std::vector<TensorEntry>& found,
                        const std::vector<TensorEntry>& expected) {
  const bool saved = has_masters(found);
  if (saved != has_masters(expected)) {
    throw Error(Errc::CheckpointMismatch,
                fmt::format("the checkpoint has {} masters of weights in float32, and this "
                            "training has {}: set {} as it was when the checkpoint was saved, or "
                            "begin a training with the weights alone",
                            saved ? "the" : "no",
                            saved ? "none" : "some",
                            kOption))
        .about("master_weights");
  }
}

}  // namespace

CheckpointHeader header_of(const Checkpoint& checkpoint) {
  CheckpointHeader header{checkpoint, {}};
  for (const auto& [name, tensor] : checkpoint.tensors) {
    require_plain(name, tensor);
    header.tensors.push_back(entry_of(name, stored_type(tensor), tensor.sizes().vec()));
  }
  return header;
}

void write_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  CheckpointSave save(path, header_of(checkpoint));
  for (const auto& [name, tensor] : checkpoint.tensors) {
    save.add(tensor);
  }
  save.publish();
}

CheckpointSave::CheckpointSave(const std::string& path, CheckpointHeader header) try
    : header_(with_plain_types(std::move(header))),
      file_(path),
      writer_(file_, header_),
      thread_(header_.tensors.size(), kHeldBytes, [this](const at::Tensor& tensor) {
        writer_.add(bytes_of_tensor(tensor));
      }) {
} catch (const std::system_error& error) {
  throw Error(Errc::UsageFile,
              fmt::format("'{}' cannot be written: no thread can be started for it ({}); end other "
                          "programs, or raise the limit of threads (ulimit -u)",
                          path,
                          error.what()));
}

void CheckpointSave::add(const at::Tensor& tensor) {
  const TensorEntry& entry = header_.tensors.at(added_++);
  require_plain(entry.name, tensor);
  SC_CHECK(tensor.sizes() == at::IntArrayRef(entry.shape) && stored_type(tensor) == entry.type,
           "a checkpoint gets the tensors of its header: " + entry.name);
  thread_.add(in_order(tensor));
}

void CheckpointSave::finish_writing() {
  SC_CHECK(added_ == header_.tensors.size(), "a checkpoint has all tensors of its header");
  thread_.wait();
}

void CheckpointSave::publish() {
  finish_writing();
  const Sha256::Digest written = writer_.seal();
  file_.synchronize();
  try {
    if (CheckpointReader(file_.temporary()).checksum() != written) {  // keeps CK-3
      throw Error(Errc::CheckpointFormat, "it is another checkpoint");
    }
  } catch (const Error& error) {
    throw Error(Errc::UsageFile,
                fmt::format("'{}' {}",
                            file_.path(),
                            error.code() == Errc::CheckpointFormat
                                ? "reads back differently from what was written: the disk cannot "
                                  "be trusted; name a place on another one"
                                : "cannot be read back, so it was not put in its place; write it "
                                  "again, or name another place"))
        .because(error);
  }
  file_.publish();  // keeps CK-1
}

Checkpoint read_checkpoint(const std::string& path) {
  const CheckpointReader reader(path);
  const CheckpointHeader& header = reader.header();
  Checkpoint checkpoint{header, {}};
  for (std::size_t i = 0; i < header.tensors.size(); ++i) {
    const TensorEntry& entry = header.tensors[i];
    at::Tensor tensor = at::empty(entry.shape, at::TensorOptions(*type_named(entry.type)));
    reader.read(i, 0, {static_cast<char*>(tensor.mutable_data_ptr()), tensor.nbytes()});
    checkpoint.tensors.push_back({entry.name, std::move(tensor)});
  }
  return checkpoint;
}

at::Tensor read_tensor(const CheckpointReader& reader, const std::string& name) {
  const auto share = share_named(name);
  const auto position = reader.position_of(share ? share->name : name);
  SC_CHECK(position.has_value(), "the checkpoint has every tensor that ranks list: " + name);
  const TensorEntry& entry = reader.header().tensors[*position];
  const at::TensorOptions options(*type_named(entry.type));
  at::Tensor tensor =
      share ? at::empty(share->end - share->begin, options) : at::empty(entry.shape, options);
  const std::size_t begin =
      share ? static_cast<std::size_t>(share->begin) * tensor.element_size() : 0;
  SC_CHECK(begin + tensor.nbytes() <= entry.bytes, "a share is a part of its tensor: " + name);
  reader.read(*position, begin, {static_cast<char*>(tensor.mutable_data_ptr()), tensor.nbytes()});
  return tensor;
}

std::vector<NamedTensor> read_module_state(const CheckpointReader& reader) {
  std::vector<NamedTensor> state;
  for (const TensorEntry& entry : reader.header().tensors) {
    for (const std::string_view kind : {kWeight, kBuffer}) {
      if (entry.name.starts_with(kind)) {
        state.push_back({entry.name.substr(kind.size()), read_tensor(reader, entry.name)});
      }
    }
  }
  return state;
}

std::string other_processors(const std::vector<std::string>& saved,
                             const std::vector<std::string>& now) {
  if (saved.empty() || now.empty() || saved == now) {
    return "";
  }
  return fmt::format(
      "the ranks that saved it computed with {}, these compute with {}: the run may get other bits "
      "than an uninterrupted one",
      fmt::join(saved, " and "),
      fmt::join(now, " and "));
}

void check_same_model(const CheckpointHeader& found, const ExpectedState& expected) {
  if (found.optimizer != expected.optimizer) {
    throw Error(Errc::CheckpointMismatch,
                fmt::format("the checkpoint is of the optimizer {}, and this training uses {}: set "
                            "{} as it was when the checkpoint was saved",
                            found.optimizer,
                            expected.optimizer,
                            kOption))
        .about("optimizer");
  }
  if (expected.seed && found.seed != *expected.seed) {
    throw Error(Errc::CheckpointMismatch,
                fmt::format("the checkpoint's random numbers are those of seed {0}, and this "
                            "training's of seed {1}: train with seed {0}, or choose one of them "
                            "with {2}",
                            found.seed,
                            *expected.seed,
                            kOption))
        .about("SeedFrom::Checkpoint or SeedFrom::Trainer");
  }
  check_same_masters(found.tensors, expected.tensors);
  std::map<std::string, std::string> extra;
  for (const TensorEntry& entry : found.tensors) {
    extra[entry.name] = shape_text(entry.type, entry.shape);
  }
  const std::map<std::string, std::string> shapes = extra;
  for (const auto& [name, type, shape, bytes] : expected.tensors) {
    const auto same = shapes.find(name);
    if (same == shapes.end()) {
      throw_other_model(
          fmt::format(", optimizer, frozen parameters or averages: it has no {}, which this "
                      "training has",
                      tensor_text(name)));
    }
    if (same->second != shape_text(type, shape)) {
      throw_other_model(fmt::format(": its {} is {}, that of this training is {}",
                                    tensor_text(name),
                                    same->second,
                                    shape_text(type, shape)));
    }
    extra.erase(name);
  }
  if (!extra.empty()) {
    throw_other_model(
        fmt::format(", optimizer, frozen parameters or averages: it has {}, which this "
                    "training has not",
                    tensor_text(extra.begin()->first)));
  }
}

}  // namespace stagecraft
