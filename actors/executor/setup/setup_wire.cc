#include "stagecraft/actors/executor/setup/setup_wire.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/actors/executor/setup/verify_setup.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/stage/verify_stage.h"
#include "stagecraft/compiler/wire/program_wire.h"

namespace stagecraft {
namespace wire {

template <>
inline constexpr LearningRate::Kind kLast<LearningRate::Kind> = LearningRate::Kind::Wsd;
template <>
inline constexpr DecayOn kLast<DecayOn> = DecayOn::Matrices;
template <>
inline constexpr DeviceTransport kLast<DeviceTransport> = DeviceTransport::Host;
template <>
inline constexpr DeviceReduce kLast<DeviceReduce> = DeviceReduce::Nccl;
template <>
inline constexpr Dispatch kLast<Dispatch> = Dispatch::Decided;

}  // namespace wire

namespace {

constexpr std::string_view kMagic = "STGSETUP";
constexpr std::string_view kShapeMagic = "STGSHAPE";
constexpr std::size_t kWord = 8;
constexpr std::size_t kPreamble = 3 * kWord;

std::array<char, kWord> little_endian(std::uint64_t value) {
  std::array<char, kWord> bytes{};
  for (char& byte : bytes) {
    byte = static_cast<char>(value & 0xFFU);
    value >>= 8U;
  }
  return bytes;
}

std::uint64_t little_endian_at(std::string_view bytes, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = kWord; i-- > 0;) {
    value = value << 8U | static_cast<unsigned char>(bytes[at + i]);
  }
  return value;
}

[[noreturn]] void refuse_bytes(const std::string& found) {
  throw Error(Errc::WireFormat,
              fmt::format("the bytes that were received are not the setup of a rank: {}", found));
}

void refuse_obstacles(Rank rank, const std::vector<std::string>& all) {
  if (!all.empty()) {
    throw Error(Errc::UsageArgument,
                fmt::format("rank {} cannot run in another process: {}; run its ranks as threads "
                            "of this one, or leave these parts out",
                            rank.value,
                            fmt::join(all, "; ")));
  }
}

std::vector<std::string> obstacles_in(const StagePrograms& stages) {
  std::vector<std::string> all;
  for (const auto& stage : stages) {
    const std::vector<std::string> of_stage = wire::obstacles(*stage);
    all.insert(all.end(), of_stage.begin(), of_stage.end());
  }
  return all;
}

template <class Record>
EncodedSetup encoded(std::string_view magic, const Record& record) {
  wire::TensorTable tensors;
  for (const auto& stage : record.stages) {
    for (const StageConstant& constant : stage->constants) {
      tensors.number_of(constant.tensor);  // first: their facts precede the record
    }
  }
  wire::ProgramWriter out(tensors);
  out.array(2);
  wire::put(out, tensors.facts());
  wire::put(out, record);
  std::string bytes(magic);
  for (const std::uint64_t word : {kSetupVersion, std::uint64_t{tensors.facts().size()}}) {
    const auto raw = little_endian(word);
    bytes.append(raw.data(), raw.size());
  }
  return {.bytes = bytes + out.take(), .tensors = tensors.spans()};
}

/// Errors: WireFormat.
template <class Record>
Record decoded(std::string_view magic,
               std::string_view bytes,
               const std::vector<at::Tensor>& tensors) {
  const std::size_t count = tensor_count(bytes);
  if (!bytes.starts_with(magic)) {
    refuse_bytes(
        fmt::format("it begins with {} instead of {}", bytes.substr(0, magic.size()), magic));
  }
  wire::ProgramReader in(bytes.substr(kPreamble));
  in.array_of(2, "a setup");
  std::vector<wire::TensorFacts> facts;
  wire::get(in, facts);
  if (facts.size() != count) {
    in.refuse(fmt::format("it begins with {} tensors and describes {}", count, facts.size()));
  }
  in.use(wire::laid_over(in, facts, tensors));
  Record record;
  wire::get(in, record);
  in.end();
  return record;
}

}  // namespace

std::vector<std::string> obstacles(const RankSetup& setup) {
  std::vector<std::string> all = obstacles_in(setup.stages);
  if (setup.options.before_instruction) {
    all.emplace_back("the options have before_instruction, which is called in this process");
  }
  if (const auto* custom = std::get_if<CustomOptimizer>(&setup.optimizer)) {
    all.push_back(fmt::format("the optimizer \"{}\" is a callable of this process", custom->name));
  }
  return all;
}

std::vector<std::string> obstacles(const RankShape& shape) {
  return obstacles_in(shape.stages);
}

EncodedSetup encode(const RankSetup& setup) {
  refuse_obstacles(setup.rank(), obstacles(setup));  // keeps SW-3
  return encoded(kMagic, setup);
}

EncodedSetup encode(const RankShape& shape) {
  refuse_obstacles(shape.rank, obstacles(shape));  // keeps SW-3
  return encoded(kShapeMagic, shape);
}

std::size_t tensor_count(std::string_view bytes) {
  if (bytes.size() < kPreamble || (!bytes.starts_with(kMagic) && !bytes.starts_with(kShapeMagic))) {
    refuse_bytes(fmt::format("its {} bytes do not begin like a setup", bytes.size()));
  }
  const std::uint64_t version = little_endian_at(bytes, kWord);
  if (version != kSetupVersion) {
    refuse_bytes(
        fmt::format("its form is version {}, {} than version {}, which this program knows: run "
                    "the same version of Stagecraft on both ends",
                    version,
                    version > kSetupVersion ? "newer" : "older",
                    kSetupVersion));
  }
  const std::uint64_t count = little_endian_at(bytes, 2 * kWord);
  if (count > bytes.size() - kPreamble) {
    refuse_bytes(fmt::format("it has {} bytes and claims {} tensors", bytes.size(), count));
  }
  return static_cast<std::size_t>(count);
}

RankSetup decode_setup(std::string_view bytes, const std::vector<at::Tensor>& tensors) {
  RankSetup setup = decoded<RankSetup>(kMagic, bytes, tensors);
  if (const std::vector<std::string> faults = verify(setup); !faults.empty()) {  // keeps SW-2
    throw Error(Errc::PlanInvalid,
                fmt::format("the setup of rank {} that was received cannot be run: {}",
                            setup.rank().value,
                            fmt::join(faults, "; ")));
  }
  return setup;
}

RankShape decode_shape(std::string_view bytes, const std::vector<at::Tensor>& tensors) {
  RankShape shape = decoded<RankShape>(kShapeMagic, bytes, tensors);
  std::vector<std::string> faults;
  for (const auto& stage : shape.stages) {
    const std::vector<std::string> of_stage = verify(*stage);
    faults.insert(faults.end(), of_stage.begin(), of_stage.end());
  }
  if (!faults.empty()) {  // keeps SW-2
    throw Error(
        Errc::PlanInvalid,
        fmt::format(
            "the stages of rank {} for another shape or evaluation that were received cannot be "
            "run: {}",
            shape.rank.value,
            fmt::join(faults, "; ")));
  }
  return shape;
}

}  // namespace stagecraft
