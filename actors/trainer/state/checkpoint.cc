#include "stagecraft/actors/trainer/state/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/actors/trainer/state/checkpoint_file.h"
#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

// ---- which tensors can be saved -----------------------------------------------------------------

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

CheckpointHeader header_of(const Checkpoint& checkpoint) {
  CheckpointHeader header{.step = checkpoint.step,
                          .seed = checkpoint.seed,
                          .optimizer = checkpoint.optimizer,
                          .tensors = {},
                          .processors = checkpoint.processors,
                          .loss_scale = checkpoint.loss_scale};
  for (const auto& [name, tensor] : checkpoint.tensors) {
    if (const auto why = obstacle(tensor)) {
      throw Error(Errc::CheckpointFormat,
                  fmt::format("a checkpoint keeps dense tensors of plain numbers, {} is {}; "
                              "register its parts as buffers, or leave it unregistered",
                              name,
                              *why));
    }
    header.tensors.push_back({.name = name,
                              .type = c10::toString(tensor.scalar_type()),
                              .shape = tensor.sizes().vec(),
                              .bytes = static_cast<std::uint64_t>(tensor.numel()) *
                                       c10::elementSize(tensor.scalar_type())});
  }
  return header;
}

/// Returns the tensor with its elements in order and resolved: a conjugate view must not be written
/// as the tensor that it is a view of.
at::Tensor in_order(const at::Tensor& tensor) {
  return tensor.detach().resolve_conj().resolve_neg().contiguous();
}

std::span<const char> bytes_of_tensor(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

// ---- comparing ----------------------------------------------------------------------------------

bool holds(const CheckpointReader& reader, std::size_t tensor, std::span<const char> expected) {
  std::vector<char> buffer(std::min(expected.size(), std::size_t{1} << 20U));
  for (std::size_t at = 0; at < expected.size(); at += buffer.size()) {
    const auto chunk = std::span(buffer).first(std::min(buffer.size(), expected.size() - at));
    reader.read(tensor, at, chunk);
    if (std::memcmp(chunk.data(), expected.data() + at, chunk.size()) != 0) {
      return false;
    }
  }
  return true;
}

std::string shape_text(std::string_view type, at::IntArrayRef shape) {
  return fmt::format("{} [{}]", type, fmt::join(shape, ", "));
}

[[noreturn]] void throw_mismatch(const std::string& what) {
  throw Error(Errc::CheckpointMismatch, what);
}

}  // namespace

void write_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  WholeFile file(path);
  fill_checkpoint(file, checkpoint);
  publish_checkpoint(file, checkpoint);
}

void fill_checkpoint(WholeFile& file, const Checkpoint& checkpoint) {
  CheckpointWriter writer(file, header_of(checkpoint));
  for (const auto& [name, tensor] : checkpoint.tensors) {
    writer.add(bytes_of_tensor(in_order(tensor)));
  }
  writer.seal();
}

void publish_checkpoint(WholeFile& file, const Checkpoint& checkpoint) {
  file.synchronize();
  try {
    check_holds(file.temporary(), checkpoint);  // keeps CK-3
  } catch (const Error& error) {
    if (error.code() != Errc::CheckpointFormat) {
      throw;
    }
    throw Error(Errc::UsageFile,
                fmt::format("'{}' reads back differently from what was written: the disk cannot be "
                            "trusted; name a place on another one",
                            file.path()))
        .because(error);
  }
  file.publish();  // keeps CK-1
}

Checkpoint read_checkpoint(const std::string& path) {
  const CheckpointReader reader(path);
  const CheckpointHeader& header = reader.header();
  Checkpoint checkpoint{.step = header.step,
                        .seed = header.seed,
                        .optimizer = header.optimizer,
                        .tensors = {},
                        .processors = header.processors,
                        .loss_scale = header.loss_scale};
  for (std::size_t i = 0; i < header.tensors.size(); ++i) {
    const CheckpointHeader::Entry& entry = header.tensors[i];
    at::Tensor tensor = at::empty(entry.shape, at::TensorOptions(*type_named(entry.type)));
    reader.read(i, 0, {static_cast<char*>(tensor.mutable_data_ptr()), tensor.nbytes()});
    checkpoint.tensors.push_back({entry.name, std::move(tensor)});
  }
  return checkpoint;
}

void check_holds(const std::string& path, const Checkpoint& checkpoint) {
  const CheckpointReader reader(path);
  const auto differs = [&](const std::string& what) {
    throw Error(Errc::CheckpointFormat,
                fmt::format("{} of the file '{}' differs from what was written", what, path));
  };
  if (reader.header() != header_of(checkpoint)) {
    differs("the header");
  }
  for (std::size_t i = 0; i < checkpoint.tensors.size(); ++i) {
    const auto& [name, tensor] = checkpoint.tensors[i];
    if (!holds(reader, i, bytes_of_tensor(in_order(tensor)))) {
      differs(name);
    }
  }
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

void check_same_model(const Checkpoint& found, const ExpectedState& expected) {
  if (found.optimizer != expected.optimizer) {
    throw_mismatch(fmt::format(
        "the checkpoint is of the optimizer {}, the trainer uses {}: make the trainer with the "
        "same one",
        found.optimizer,
        expected.optimizer));
  }
  if (expected.seed && found.seed != *expected.seed) {
    throw_mismatch(fmt::format(
        "the checkpoint's random numbers are those of seed {}, the trainer's of seed {}: make the "
        "trainer with seed {}, or choose one of them with SeedFrom::Checkpoint or "
        "SeedFrom::Trainer "
        "(--seed-from checkpoint or --seed-from option)",
        found.seed,
        *expected.seed,
        found.seed));
  }
  std::map<std::string, std::string> extra;
  for (const auto& [name, tensor] : found.tensors) {
    extra[name] = shape_text(c10::toString(tensor.scalar_type()), tensor.sizes());
  }
  const std::map<std::string, std::string> shapes = extra;
  for (const auto& [name, type, shape] : expected.tensors) {
    const auto same = shapes.find(name);
    if (same == shapes.end()) {
      throw_mismatch(fmt::format(
          "the checkpoint is of another model, optimizer or frozen parameters: it has no "
          "{}",
          name));
    }
    if (same->second != shape_text(type, shape)) {
      throw_mismatch(
          fmt::format("the checkpoint is of another model: its {} is {}, the trainer's is {}",
                      name,
                      same->second,
                      shape_text(type, shape)));
    }
    extra.erase(name);
  }
  if (!extra.empty()) {
    throw_mismatch(
        fmt::format("the checkpoint is of another model, optimizer or frozen parameters: it has "
                    "{}, the trainer "
                    "has not",
                    extra.begin()->first));
  }
}

}  // namespace stagecraft
