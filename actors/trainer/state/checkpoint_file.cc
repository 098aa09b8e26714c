#include "stagecraft/actors/trainer/state/checkpoint_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <system_error>
#include <tuple>
#include <utility>

#include <c10/util/accumulate.h>
#include <fmt/format.h>
#include <msgpack.hpp>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

constexpr std::string_view kMagic = "STGCRAFT";
constexpr std::uint64_t kFileVersion = 5;
constexpr std::size_t kPreamble = 24;
constexpr std::size_t kAlignment = 64;
constexpr std::array<char, kAlignment> kZeros{};
constexpr std::size_t kDigest = std::tuple_size_v<Sha256::Digest>;
constexpr std::size_t kChunk = std::size_t{1} << 20U;
constexpr std::size_t kDeepest = 4;  // a shape in a tensor in the list of the header

/// The header in msgpack: arrays of fields.
using PackedEntry = std::tuple<std::string, std::string, std::vector<std::int64_t>, std::uint64_t>;
using PackedHeader1 =
    std::tuple<std::int64_t, std::uint64_t, std::string, std::vector<PackedEntry>>;
using PackedHeader2 = std::tuple<std::int64_t,
                                 std::uint64_t,
                                 std::string,
                                 std::vector<PackedEntry>,
                                 std::vector<std::string>>;
/// PackedScale holds the factor of a LossScale, and both counts.
using PackedScale = std::tuple<double, std::int64_t, std::int64_t>;
using PackedHeader3 = std::tuple<std::int64_t,
                                 std::uint64_t,
                                 std::string,
                                 std::vector<PackedEntry>,
                                 std::vector<std::string>,
                                 std::optional<PackedScale>>;
/// PackedLoop holds the fields of a LoopState, then those of its WatchState; the goal as whether
/// large values are better.
using PackedLoop = std::tuple<std::int64_t,
                              std::int64_t,
                              std::string,
                              std::int64_t,
                              std::string,
                              bool,
                              std::optional<double>,
                              std::int64_t,
                              std::optional<double>,
                              std::int64_t,
                              std::int64_t,
                              double>;
using PackedHeader4 = std::tuple<std::int64_t,
                                 std::uint64_t,
                                 std::string,
                                 std::vector<PackedEntry>,
                                 std::vector<std::string>,
                                 std::optional<PackedScale>,
                                 std::optional<PackedLoop>>;
/// PackedFrozen holds the match and the count of each group.
using PackedFrozen = std::vector<std::tuple<std::string, std::int64_t>>;
using PackedHeader = std::tuple<std::int64_t,
                                std::uint64_t,
                                std::string,
                                std::vector<PackedEntry>,
                                std::vector<std::string>,
                                std::optional<PackedScale>,
                                std::optional<PackedLoop>,
                                std::optional<PackedFrozen>>;

PackedHeader packed(const CheckpointHeader& header) {
  std::vector<PackedEntry> tensors;
  for (const auto& [name, type, shape, bytes] : header.tensors) {
    tensors.emplace_back(name, type, shape, bytes);
  }
  std::optional<PackedScale> scale;
  if (header.loss_scale) {
    scale = {header.loss_scale->factor, header.loss_scale->good, header.loss_scale->skipped};
  }
  std::optional<PackedLoop> loop;
  if (header.loop) {
    const WatchState& watch = header.loop->watch;
    loop = {header.loop->epoch,
            header.loop->batches,
            header.loop->random,
            header.loop->evaluated,
            watch.metric,
            watch.goal == Goal::Max,
            watch.best,
            watch.best_step,
            watch.mark,
            watch.waited,
            watch.waited_for_rate,
            watch.rate_factor};
  }
  std::optional<PackedFrozen> frozen;
  if (header.frozen) {
    frozen.emplace(header.frozen->begin(), header.frozen->end());
  }
  return {header.step,
          header.seed,
          header.optimizer,
          std::move(tensors),
          header.processors,
          scale,
          std::move(loop),
          std::move(frozen)};
}

LossScale unpacked(const PackedScale& scale) {
  const auto& [factor, good, skipped] = scale;
  return {.factor = factor, .good = good, .skipped = skipped};
}

LoopState unpacked(PackedLoop loop) {
  auto& [epoch,
         batches,
         random,
         evaluated,
         metric,
         largest,
         best,
         best_step,
         mark,
         waited,
         for_rate,
         factor] = loop;
  return {.epoch = epoch,
          .batches = batches,
          .random = std::move(random),
          .evaluated = evaluated,
          .watch = {.metric = std::move(metric),
                    .goal = largest ? Goal::Max : Goal::Min,
                    .best = best,
                    .best_step = best_step,
                    .mark = mark,
                    .waited = waited,
                    .waited_for_rate = for_rate,
                    .rate_factor = factor}};
}

CheckpointHeader unpacked(const std::vector<char>& header_bytes, std::uint64_t version) {
  // No list or text in it can have more parts than the header has bytes.
  const std::size_t most = header_bytes.size();
  const msgpack::unpack_limit limit(most, 0, most, 0, 0, kDeepest);
  const auto found = msgpack::unpack(header_bytes.data(), most, nullptr, nullptr, limit);
  CheckpointHeader header;
  std::vector<PackedEntry> tensors;
  std::optional<PackedScale> scale;
  std::optional<PackedLoop> loop;
  std::optional<PackedFrozen> frozen;
  if (version == 1) {
    std::tie(header.step, header.seed, header.optimizer, tensors) = found.get().as<PackedHeader1>();
  } else if (version == 2) {
    std::tie(header.step, header.seed, header.optimizer, tensors, header.processors) =
        found.get().as<PackedHeader2>();
  } else if (version == 3) {
    std::tie(header.step, header.seed, header.optimizer, tensors, header.processors, scale) =
        found.get().as<PackedHeader3>();
  } else if (version == 4) {
    std::tie(header.step, header.seed, header.optimizer, tensors, header.processors, scale, loop) =
        found.get().as<PackedHeader4>();
  } else {
    std::tie(header.step,
             header.seed,
             header.optimizer,
             tensors,
             header.processors,
             scale,
             loop,
             frozen) = found.get().as<PackedHeader>();
  }
  if (scale) {
    header.loss_scale = unpacked(*scale);
  }
  if (loop) {
    header.loop = unpacked(std::move(*loop));
  }
  if (frozen) {
    header.frozen.emplace();
    for (auto& [match, updates] : *frozen) {
      header.frozen->emplace(std::move(match), updates);
    }
  }
  for (auto& [name, type, shape, bytes] : tensors) {
    header.tensors.push_back({std::move(name), std::move(type), std::move(shape), bytes});
  }
  return header;
}

/// Returns nothing if a run can have these; else what is wrong.
std::string impossible_in(const CheckpointFacts& facts) {
  if (facts.loss_scale && !is_possible(*facts.loss_scale, facts.step)) {
    return "its scale of losses is impossible";
  }
  if (facts.frozen && !is_possible(*facts.frozen, weight_changes(facts))) {
    return "a group was frozen in more updates than it has";
  }
  if (facts.loop && !is_possible(*facts.loop, facts.step)) {
    return "its state of a loop is impossible";
  }
  return "";
}

constexpr std::size_t aligned(std::size_t at) {
  return (at + kAlignment - 1) / kAlignment * kAlignment;
}

std::array<char, 8> little_endian(std::uint64_t value) {
  std::array<char, 8> bytes{};
  for (char& byte : bytes) {
    byte = static_cast<char>(value & 0xFFU);
    value >>= 8U;
  }
  return bytes;
}

std::uint64_t little_endian_at(std::span<const char> bytes, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 8; i-- > 0;) {
    value = value << 8U | static_cast<unsigned char>(bytes[at + i]);
  }
  return value;
}

[[noreturn]] void unreadable(const std::string& path, const std::string& why) {
  throw Error(Errc::UsageFile, fmt::format("the checkpoint '{}' cannot be read: {}", path, why));
}

/// Returns nothing if type and shape of the entry give its number of bytes; else the contradiction.
std::string contradiction(const TensorEntry& entry) {
  const auto type = type_named(entry.type);
  std::uint64_t bytes = type ? c10::elementSize(*type) : 0;
  for (const std::int64_t extent : entry.shape) {
    if (extent < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes)) {
      return fmt::format("the shape of {} is impossible", entry.name);
    }
  }
  return type && bytes == entry.bytes
             ? ""
             : fmt::format("the entry of {} contradicts itself", entry.name);
}

}  // namespace

std::optional<at::ScalarType> type_named(std::string_view name) {
  for (int i = 0; i < static_cast<int>(at::ScalarType::Undefined); ++i) {
    const auto type = static_cast<at::ScalarType>(i);
    if (name == c10::toString(type) && !c10::isQIntType(type)) {
      return type;
    }
  }
  return std::nullopt;
}

std::int64_t weight_changes(const CheckpointFacts& facts) {
  return facts.step - (facts.loss_scale ? facts.loss_scale->skipped : 0);
}

std::string packed_facts(const CheckpointFacts& facts) {
  msgpack::sbuffer buffer;
  msgpack::pack(buffer, packed({facts, {}}));
  return {buffer.data(), buffer.size()};
}

CheckpointFacts unpacked_facts(const std::string& text) {
  std::string why;
  CheckpointFacts facts;
  try {
    facts = unpacked({text.begin(), text.end()}, kFileVersion);
    why = impossible_in(facts);
  } catch (const std::exception& error) {
    why = error.what();
  }
  if (!why.empty()) {
    throw Error(
        Errc::CheckpointFormat,
        fmt::format("what a rank tells of a state cannot be read ({}): load a checkpoint", why));
  }
  return facts;
}

TensorEntry entry_of(std::string name, std::string type, std::vector<std::int64_t> shape) {
  const auto known = type_named(type);
  const std::uint64_t bytes = static_cast<std::uint64_t>(c10::multiply_integers(shape)) *
                              (known ? c10::elementSize(*known) : 1);
  return {std::move(name), std::move(type), std::move(shape), bytes};
}

// ---- writing ------------------------------------------------------------------------------------

CheckpointWriter::CheckpointWriter(WholeFile& file, const CheckpointHeader& header) : file_(file) {
  msgpack::sbuffer buffer;
  msgpack::pack(buffer, packed(header));
  write(kMagic);
  write(little_endian(kFileVersion));
  write(little_endian(buffer.size()));
  write({buffer.data(), buffer.size()});
}

void CheckpointWriter::add(std::span<const char> tensor) {
  write(std::span(kZeros).first(aligned(size_) - size_));
  write(tensor);
}

Sha256::Digest CheckpointWriter::seal() {
  const Sha256::Digest digest = sha_.finish();
  file_.write({reinterpret_cast<const char*>(digest.data()), digest.size()});
  return digest;
}

void CheckpointWriter::write(std::span<const char> bytes) {
  sha_.add(bytes);
  file_.write(bytes);
  size_ += bytes.size();
}

// ---- reading ------------------------------------------------------------------------------------

CheckpointReader::CheckpointReader(const std::string& path)
    : path_(path), file_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  struct stat found {};
  if (file_.fd < 0 || fstat(file_.fd, &found) != 0) {
    unreadable(
        path,
        errno == ENOENT ? "expected a file, found none" : std::generic_category().message(errno));
  }
  if (!S_ISREG(found.st_mode)) {
    unreadable(path, "it is no regular file");
  }
  const auto size = static_cast<std::size_t>(found.st_size);
  content_ = size < kDigest ? 0 : size - kDigest;
  read_header(check_content());
}

CheckpointReader::Descriptor::~Descriptor() {
  if (fd >= 0) {
    close(fd);
  }
}

std::optional<std::size_t> CheckpointReader::position_of(std::string_view name) const {
  const auto found = positions_.find(name);
  return found == positions_.end() ? std::nullopt : std::optional(found->second);
}

void CheckpointReader::read(std::size_t tensor, std::size_t begin, std::span<char> bytes) const {
  read_content(places_[tensor] + begin, bytes);
}

void CheckpointReader::refuse(const std::string& found) const {
  throw Error(Errc::CheckpointFormat,
              fmt::format("{} is not a usable checkpoint: {}; use one that a training saved, or an "
                          "older copy",
                          path_,
                          found));
}

void CheckpointReader::read_at(std::size_t at, std::span<char> bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = disk_->read(file_.fd, at, bytes);
    if (count < 0 && errno != EINTR) {
      unreadable(path_, std::generic_category().message(errno));
    }
    if (count == 0) {
      refuse("it ended while it was read");
    }
    const auto done = static_cast<std::size_t>(std::max<ssize_t>(count, 0));
    at += done;
    bytes = bytes.subspan(done);
  }
}

void CheckpointReader::read_chunk(std::size_t number) const {
  present_ = std::nullopt;
  const std::size_t begin = number * kChunk;
  chunk_.resize(std::min(kChunk, content_ - begin));
  read_at(begin, chunk_);
}

void CheckpointReader::require_chunk(std::size_t number) const {
  if (number == present_) {
    return;
  }
  read_chunk(number);
  Sha256 sum = sums_[number];
  sum.add(chunk_);
  if (sum.finish() != Sha256(sums_[number + 1]).finish()) {
    refuse("it changed since its checksum was found right");
  }
  present_ = number;
}

void CheckpointReader::read_content(std::size_t at, std::span<char> bytes) const {
  while (!bytes.empty()) {
    require_chunk(at / kChunk);
    const auto part = std::span(chunk_).subspan(at % kChunk);
    const std::size_t count = std::min(part.size(), bytes.size());
    std::memcpy(bytes.data(), part.data(), count);
    at += count;
    bytes = bytes.subspan(count);
  }
}

CheckpointReader::Preamble CheckpointReader::preamble() const {
  if (chunk_.size() < kPreamble ||
      !std::string_view(chunk_.data(), chunk_.size()).starts_with(kMagic)) {
    refuse("it does not begin as one");
  }
  const Preamble found{.version = little_endian_at(chunk_, 8),
                       .length = little_endian_at(chunk_, 16)};
  if (found.version < 1 || found.version > kFileVersion) {
    refuse(fmt::format("its format is version {}, this program knows versions 1 to {}",
                       found.version,
                       kFileVersion));
  }
  return found;
}

CheckpointReader::Preamble CheckpointReader::check_content() {
  read_chunk(0);
  const Preamble found = preamble();
  sums_.emplace_back();
  for (std::size_t number = 0;;) {
    sums_.push_back(sums_.back());
    sums_.back().add(chunk_);
    if (++number * kChunk >= content_) {
      break;
    }
    read_chunk(number);
  }
  read_at(content_, {reinterpret_cast<char*>(checksum_.data()), checksum_.size()});
  if (Sha256(sums_.back()).finish() != checksum_) {
    refuse("its checksum is wrong, so it was cut short or changed");
  }
  return found;
}

void CheckpointReader::read_header(const Preamble& found) {
  if (found.length > content_ - kPreamble) {
    refuse("its header is longer than the file");
  }
  std::vector<char> bytes(static_cast<std::size_t>(found.length));
  read_content(kPreamble, bytes);
  try {
    header_ = unpacked(bytes, found.version);
  } catch (const std::exception& error) {
    refuse(fmt::format("its header cannot be read ({})", error.what()));
  }
  if (const std::string wrong = impossible_in(header_); !wrong.empty()) {
    refuse(wrong);
  }
  place_tensors(kPreamble + bytes.size());
}

/// Sets the places of the tensors, which follow each other and fill the file to its end.
void CheckpointReader::place_tensors(std::size_t begin) {
  for (const TensorEntry& entry : header_.tensors) {
    if (const std::string wrong = contradiction(entry); !wrong.empty()) {
      refuse(wrong);
    }
    begin = aligned(begin);
    if (begin > content_ || entry.bytes > content_ - begin) {
      refuse(fmt::format("{} lies behind its end", entry.name));
    }
    positions_.emplace(entry.name, places_.size());
    places_.push_back(begin);
    begin += static_cast<std::size_t>(entry.bytes);
  }
  if (begin != content_) {
    refuse("it is longer than its header says");
  }
}

}  // namespace stagecraft
