#include "stagecraft/scheduler/strategy/piper_strategy.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/nearest.h"
#include "stagecraft/scheduler/formats/json/piper.h"
#include "stagecraft/scheduler/formats/json/piper_directives.h"
#include "stagecraft/scheduler/formats/parts/cell_text.h"
#include "stagecraft/scheduler/formats/parts/fault_list.h"
#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {
namespace {

using formats::PiperDirective;
using formats::PiperDirectiveReader;
using formats::PiperFilter;
using formats::PiperTag;

constexpr std::int64_t kMegabyte = std::int64_t{1} << 20U;

constexpr std::array<std::pair<CellKind, Pass>, 4> kPassOfKind{
    {{CellKind::Forward, Pass::F},
     {CellKind::Backward, Pass::B},
     {CellKind::BackwardInput, Pass::BI},
     {CellKind::BackwardWeight, Pass::BW}}};

struct PiperWords {
  std::string_view op;
  std::vector<std::string_view> keys;  ///< beside "op"
};

const std::vector<PiperWords>& piper_words() {
  static const std::vector<PiperWords> kWords{{"split", {"filter", "dim_name", "num_microbatches"}},
                                              {"place", {"filter", "devices", "stream"}},
                                              {"replicate",
                                               {"filter",
                                                "devices",
                                                "shard_params",
                                                "shard_grads",
                                                "bucket_size",
                                                "gather_stream",
                                                "reduce_stream"}},
                                              {"shard", {"filter", "devices", "stream"}},
                                              {"order", {"filters"}}};
  return kWords;
}

/// Makes directives of those of a Piper file.
class PiperStrategyReader {
 public:
  explicit PiperStrategyReader(std::string_view text) : reader_(text, faults_) {}

  [[nodiscard]] Strategy run() {
    reader_.read([this](const PiperDirective& read) { take(read); });
    faults_.refuse_if_any();
    return Strategy(std::move(directives_), std::move(lines_));
  }

 private:
  void take(const PiperDirective& read) {
    check_keys(read);
    if (read.op == "split") {
      directives_.emplace_back(split_of(read));
    } else if (read.op == "place") {
      directives_.emplace_back(
          PlaceDirective{filter_in(read), ranks_in(read), named(read, read.stream)});
    } else if (read.op == "replicate") {
      directives_.emplace_back(replicate_of(read));
    } else if (read.op == "shard") {
      directives_.emplace_back(
          ShardDirective{filter_in(read), ranks_in(read), named(read, read.stream)});
    } else {
      directives_.emplace_back(order_of(read));
    }
    lines_.push_back(reader_.location(read.offset).line);
  }

  void check_keys(const PiperDirective& read) const {
    const auto words = std::ranges::find(piper_words(), read.op, &PiperWords::op);
    if (words == piper_words().end()) {
      reader_.refuse(read.offset, formats::unknown_op(read.op));
    }
    for (const PiperDirective::Key& key : read.keys) {
      if (key.name != "op" && std::ranges::find(words->keys, key.name) == words->keys.end()) {
        reader_.refuse(key.offset,
                       fmt::format("{} is no word of {}; {}there are {}",
                                   formats::quoted(key.name),
                                   read.op,
                                   did_you_mean(key.name, {words->keys.begin(), words->keys.end()}),
                                   fmt::join(words->keys, ", ")));
      }
    }
    if (read.op != "order" && !read.has("filter")) {
      reader_.refuse(read.offset,
                     fmt::format("{} needs \"filter\"; {{}} matches everything", read.op));
    }
  }

  /// Checks that the text form can hold the name. Errors: ScheduleParse.
  [[nodiscard]] const std::string& named(const PiperDirective& read,
                                         const std::string& name) const {
    const bool good = std::ranges::all_of(
        name, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; });
    if (!good) {
      reader_.refuse(read.offset,
                     fmt::format("names of streams and tags have letters, digits, _ and -, found "
                                 "{}",
                                 formats::quoted(name)));
    }
    return name;
  }

  [[nodiscard]] Filter filter_of(const PiperDirective& read, const PiperFilter& filter) const {
    Filter made;
    for (const PiperTag& tag : filter.tags) {
      const bool good =
          tag.any || (tag.number && *tag.number >= 0 && *tag.number < kMaxMicrobatches);
      if (!good || tag.name.empty()) {
        reader_.refuse(filter.offset,
                       fmt::format("the tag {} has a number below {}, or \"*\" for any",
                                   formats::quoted(tag.name),
                                   kMaxMicrobatches));
      }
      made.tags.push_back({named(read, tag.name), tag.any ? std::nullopt : tag.number});
    }
    if (filter.pass) {
      made.pass =
          std::ranges::find(kPassOfKind, *filter.pass, &decltype(kPassOfKind)::value_type::first)
              ->second;
    }
    return made;
  }
  [[nodiscard]] Filter filter_in(const PiperDirective& read) const {
    return filter_of(read, read.filter);
  }

  [[nodiscard]] std::vector<Rank> ranks_in(const PiperDirective& read) const {
    if (read.devices.empty()) {
      reader_.refuse(read.offset, fmt::format("{} needs \"devices\", e.g. [0]", read.op));
    }
    std::vector<Rank> ranks;
    for (const int device : read.devices) {
      if (device >= kMaxStages) {
        reader_.refuse(read.offset,
                       fmt::format("a device is a number below {}, found {}", kMaxStages, device));
      }
      ranks.emplace_back(device);
    }
    return ranks;
  }

  [[nodiscard]] SplitDirective split_of(const PiperDirective& read) const {
    const int parts = read.microbatches.value_or(0);
    if (read.dimension.empty() || parts < 1 || parts > kMaxMicrobatches) {
      reader_.refuse(read.offset,
                     fmt::format("split needs \"dim_name\" and \"num_microbatches\" from 1 to {}",
                                 kMaxMicrobatches));
    }
    return {.filter = filter_in(read), .dimension = named(read, read.dimension), .parts = parts};
  }

  [[nodiscard]] ReplicateDirective replicate_of(const PiperDirective& read) const {
    ReplicateOptions options{.reduce_stream = named(read, read.reduce_stream),
                             .gather_stream = named(read, read.gather_stream),
                             .bucket_bytes = std::nullopt,
                             .shard_gradients = read.shard_grads,
                             .shard_parameters = read.shard_params};
    if (read.bucket_size) {
      options.bucket_bytes = *read.bucket_size * kMegabyte;
    }
    return {filter_in(read), ranks_in(read), std::move(options)};
  }

  [[nodiscard]] OrderDirective order_of(const PiperDirective& read) const {
    if (read.groups.size() < 2) {
      reader_.refuse(read.offset, "order needs \"filters\" with two groups or more");
    }
    OrderDirective order;
    for (const std::vector<PiperFilter>& group : read.groups) {
      auto& made = order.groups.emplace_back();
      for (const PiperFilter& filter : group) {
        made.push_back(filter_of(read, filter));
      }
    }
    return order;
  }

  formats::FaultList faults_;
  PiperDirectiveReader reader_;
  std::vector<Directive> directives_;
  std::vector<std::size_t> lines_;  ///< of the directives
};

PiperFilter piper_filter(const Filter& filter) {
  PiperFilter made;
  for (const Filter::Tag& tag : filter.tags) {
    made.tags.push_back({.name = tag.name, .number = tag.number, .any = !tag.number});
  }
  if (filter.pass) {
    made.pass =
        std::ranges::find(kPassOfKind, *filter.pass, &decltype(kPassOfKind)::value_type::second)
            ->first;
  }
  return made;
}

std::vector<int> device_numbers(const std::vector<Rank>& ranks) {
  std::vector<int> devices;
  for (const Rank rank : ranks) {
    devices.push_back(rank.value);
  }
  return devices;
}

/// Makes a directive of Piper, and notes what it has no words for.
struct PiperDirectiveMaker {
  std::vector<std::string>& faults;

  PiperDirective operator()(const SplitDirective& d) const {
    PiperDirective made = with_filter("split", d.filter);
    made.dimension = d.dimension;
    made.microbatches = d.parts;
    if (d.dimension.empty() || d.parts < 1 || d.parts > kMaxMicrobatches) {
      faults.push_back(fmt::format(
          "Piper splits a dimension with a name into 1 to {} microbatches, found {} of '{}'",
          kMaxMicrobatches,
          d.parts,
          d.dimension));
    }
    return made;
  }
  PiperDirective operator()(const PlaceDirective& d) const {
    PiperDirective made = on_devices("place", d.filter, d.ranks);
    made.stream = d.stream;
    return made;
  }
  PiperDirective operator()(const ReplicateDirective& d) const {
    PiperDirective made = on_devices("replicate", d.filter, d.ranks);
    const ReplicateOptions& o = d.options;
    made.gather_stream = o.gather_stream;
    made.reduce_stream = o.reduce_stream;
    made.shard_params = o.shard_parameters;
    made.shard_grads = o.shard_gradients;
    if (o.shard_optimizer) {
      faults.emplace_back("Piper has no word for shard_optimizer; leave it out");
    }
    if (o.bucket_bytes) {
      const bool fits = *o.bucket_bytes > 0 && *o.bucket_bytes % kMegabyte == 0 &&
                        *o.bucket_bytes / kMegabyte <= std::numeric_limits<int>::max();
      if (!fits) {
        faults.push_back(
            fmt::format("Piper counts buckets in megabytes of {} bytes, found {} bytes; round "
                        "bucket_size",
                        kMegabyte,
                        *o.bucket_bytes));
      }
      made.bucket_size = static_cast<int>(*o.bucket_bytes / kMegabyte);
    }
    return made;
  }
  PiperDirective operator()(const ShardDirective& d) const {
    PiperDirective made = on_devices("shard", d.filter, d.ranks);
    made.stream = d.stream;
    if (d.part_count() != std::ssize(d.ranks)) {
      faults.emplace_back("Piper shards over all devices of a filter; leave n out");
    }
    return made;
  }
  PiperDirective operator()(const OrderDirective& d) const {
    PiperDirective made;
    made.op = "order";
    for (const OrderDirective::Group& group : d.groups) {
      auto& filters = made.groups.emplace_back();
      std::ranges::transform(group, std::back_inserter(filters), piper_filter);
    }
    if (d.groups.size() < 2) {
      faults.push_back(
          fmt::format("Piper's order directives hold two groups or more, found {}; "
                      "leave the order out",
                      d.groups.size()));
    }
    return made;
  }

 private:
  [[nodiscard]] static PiperDirective with_filter(const char* op, const Filter& filter) {
    PiperDirective made;
    made.op = op;
    made.filter = piper_filter(filter);
    return made;
  }
  [[nodiscard]] PiperDirective on_devices(const char* op,
                                          const Filter& filter,
                                          const std::vector<Rank>& ranks) const {
    PiperDirective made = with_filter(op, filter);
    made.devices = device_numbers(ranks);
    if (ranks.empty()) {
      faults.push_back(fmt::format("{} needs ranks, found none; name them", op));
    }
    return made;
  }
};

}  // namespace

bool looks_like_piper_strategy(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && looks_like_piper(text.substr(first));
}

Strategy parse_piper_strategy(std::string_view text) {
  formats::require_size(text);
  return PiperStrategyReader(text).run();
}

std::string to_piper(const Strategy& strategy) {
  std::vector<std::string> faults;
  std::vector<std::string> lines;
  const std::vector<Directive>& directives = strategy.directives();
  for (std::size_t i = 0; i < directives.size(); ++i) {
    const std::size_t before = faults.size();
    lines.push_back(formats::to_text(std::visit(PiperDirectiveMaker{faults}, directives[i])));
    for (std::string& fault : std::span(faults).subspan(before)) {
      fault = fmt::format(
          "{}, {}: {}", strategy.place_of(i), kDirectiveNames[directives[i].index()], fault);
    }
  }
  if (!faults.empty()) {
    throw Error(Errc::ScheduleParameter, fmt::format("{}", fmt::join(faults, "; ")));
  }
  return lines.empty() ? "[]\n" : fmt::format("[\n{}\n]\n", fmt::join(lines, ",\n"));
}

}  // namespace stagecraft
