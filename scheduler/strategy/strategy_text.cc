#include "stagecraft/scheduler/strategy/strategy_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/base/error.h"
#include "stagecraft/base/nearest.h"
#include "stagecraft/base/split.h"
#include "stagecraft/scheduler/formats/parts/cell_text.h"
#include "stagecraft/scheduler/formats/parts/fault_list.h"
#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {
namespace {

using formats::fail;
using formats::Location;
using formats::quoted;

constexpr std::array<std::pair<std::string_view, Pass>, 4> kPasses{
    {{"F", Pass::F}, {"B", Pass::B}, {"BI", Pass::BI}, {"BW", Pass::BW}}};

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}
bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
}

/// Reads one line.
class LineReader {
 public:
  LineReader(std::string_view line, std::size_t number) : line_(line), number_(number) {}

  [[nodiscard]] Directive directive();

 private:
  [[noreturn]] void refuse(std::string_view what) const { fail({number_, at_ + 1}, what); }

  void skip_blanks() {
    while (at_ < line_.size() && is_blank(line_[at_])) {
      ++at_;
    }
  }
  [[nodiscard]] bool ended() {
    skip_blanks();
    return at_ == line_.size();
  }
  /// Takes the character if it comes next.
  [[nodiscard]] bool take(char c) {
    skip_blanks();
    const bool next = at_ < line_.size() && line_[at_] == c;
    at_ += next ? 1 : 0;
    return next;
  }
  void require(char c, std::string_view what) {
    if (!take(c)) {
      refuse(fmt::format("expected '{}': {}", c, what));
    }
  }
  [[nodiscard]] std::string_view word() {
    skip_blanks();
    const std::size_t begin = at_;
    while (at_ < line_.size() && is_word(line_[at_])) {
      ++at_;
    }
    return line_.substr(begin, at_ - begin);
  }
  [[nodiscard]] std::string name() {
    const std::string_view found = word();
    if (found.empty()) {
      refuse("expected a name");
    }
    return std::string(found);
  }
  [[nodiscard]] int number(int end, std::string_view what) {
    skip_blanks();
    const std::size_t begin = at_;
    const std::optional<int> found = formats::whole_number(word());
    if (!found || *found >= end) {
      at_ = begin;
      refuse(fmt::format("expected {}, a number below {}", what, end));
    }
    return *found;
  }

  [[nodiscard]] Filter filter();
  [[nodiscard]] std::vector<Rank> ranks();
  [[nodiscard]] std::int64_t bytes();
  [[nodiscard]] SplitDirective split();
  [[nodiscard]] PlaceDirective place();
  [[nodiscard]] ReplicateDirective replicate();
  [[nodiscard]] ShardDirective shard();
  [[nodiscard]] OrderDirective order();
  void replicate_option(std::string_view option, ReplicateOptions& options);

  std::string_view line_;
  std::size_t number_;
  std::size_t at_ = 0;
};

Filter LineReader::filter() {
  constexpr std::string_view kForm = "a filter is {} or, for example, {PP:0,MB:1,PASS:F}";
  require('{', kForm);
  Filter filter;
  if (take('}')) {
    return filter;
  }
  do {
    const std::string_view tag = word();
    if (tag.empty()) {
      refuse(kForm);
    }
    const bool again = tag == kPassTag ? filter.pass.has_value()
                                       : std::ranges::find(filter.tags, tag, &Filter::Tag::name) !=
                                             filter.tags.end();
    if (again) {
      refuse(fmt::format("a filter names each tag once, found {} twice", quoted(tag)));
    }
    require(':', "a tag has a number, e.g. PP:0, or PP:* for any");
    if (tag == kPassTag) {
      const std::string_view text = word();
      const auto* const pass =
          std::ranges::find(kPasses, text, [](const auto& entry) { return entry.first; });
      if (pass == kPasses.end()) {
        refuse(fmt::format("PASS is F, B, BI or BW, found {}", quoted(text)));
      }
      filter.pass = pass->second;
    } else if (take('*')) {
      filter.tags.push_back({std::string(tag), std::nullopt});
    } else {
      filter.tags.push_back(
          {std::string(tag), number(kMaxMicrobatches, "the number of a tag, or *")});
    }
  } while (take(','));
  require('}', "it ends a filter");
  return filter;
}

std::vector<Rank> LineReader::ranks() {
  if (word() != "on") {
    refuse("expected the ranks, e.g. on [0,2]");
  }
  require('[', "ranks stand in brackets, e.g. on [0,2]");
  std::vector<Rank> ranks;
  do {
    ranks.emplace_back(number(kMaxStages, "a rank"));
  } while (take(','));
  require(']', "it ends the ranks");
  return ranks;
}

std::int64_t LineReader::bytes() {
  skip_blanks();
  const std::size_t begin = at_;
  while (at_ < line_.size() && (is_word(line_[at_]) || line_[at_] == '.')) {
    ++at_;
  }
  const auto bytes = parse_bytes(line_.substr(begin, at_ - begin));
  if (!bytes) {
    at_ = begin;
    refuse(fmt::format("expected {}", kBytesForm));
  }
  return *bytes;
}

SplitDirective LineReader::split() {
  SplitDirective directive{.filter = filter()};
  while (!ended()) {
    const std::size_t begin = at_;
    const std::string_view option = word();
    if (option == "dim" && take('=')) {
      directive.dimension = name();
    } else if (option == "n" && take('=')) {
      directive.parts = number(kMaxMicrobatches + 1, "the number of microbatches");
    } else {
      at_ = begin;
      refuse("split takes dim=MB and n=NUMBER");
    }
  }
  return directive;
}

PlaceDirective LineReader::place() {
  PlaceDirective directive{.filter = filter(), .ranks = ranks()};
  while (!ended()) {
    const std::size_t begin = at_;
    if (word() != "stream" || !take('=')) {
      at_ = begin;
      refuse("place takes stream=NAME");
    }
    directive.stream = name();
  }
  return directive;
}

void LineReader::replicate_option(std::string_view option, ReplicateOptions& options) {
  if (option == "reduce_stream" && take('=')) {
    options.reduce_stream = name();
  } else if (option == "gather_stream" && take('=')) {
    options.gather_stream = name();
  } else if (option == "bucket_size" && take('=')) {
    options.bucket_bytes = bytes();
  } else if (option == "shard_optimizer") {
    options.shard_optimizer = true;
  } else if (option == "shard_grads") {
    options.shard_gradients = true;
  } else if (option == "shard_params") {
    options.shard_parameters = true;
  } else {
    at_ -= option.size();
    refuse(
        "replicate takes reduce_stream=NAME, gather_stream=NAME, bucket_size=BYTES, "
        "shard_optimizer, shard_grads and shard_params");
  }
}

ReplicateDirective LineReader::replicate() {
  ReplicateDirective directive{.filter = filter(), .ranks = ranks()};
  while (!ended()) {
    replicate_option(word(), directive.options);
  }
  return directive;
}

ShardDirective LineReader::shard() {
  ShardDirective directive{.filter = filter(), .ranks = ranks()};
  while (!ended()) {
    const std::size_t begin = at_;
    const std::string_view option = word();
    if (option == "stream" && take('=')) {
      directive.stream = name();
    } else if (option == "n" && take('=')) {
      directive.parts = number(kMaxRanks + 1, "the number of parts");
      if (directive.parts == 0) {
        at_ = begin;
        refuse("n is the number of ranks that divide the weights, at least 2");
      }
    } else {
      at_ = begin;
      refuse("shard takes stream=NAME and n=NUMBER");
    }
  }
  return directive;
}

OrderDirective LineReader::order() {
  OrderDirective directive;
  do {
    require('[', "order takes groups of filters, e.g. order [{PP:0,MB:0,PASS:F}]");
    auto& group = directive.groups.emplace_back();
    do {
      group.push_back(filter());
    } while (take(','));
    require(']', "it ends a group");
  } while (!ended());
  return directive;
}

Directive LineReader::directive() {
  skip_blanks();
  const std::size_t begin = at_;
  const std::string_view kind = word();
  Directive read;
  if (kind == "split") {
    read = split();
  } else if (kind == "place") {
    read = place();
  } else if (kind == "replicate") {
    read = replicate();
  } else if (kind == "shard") {
    read = shard();
  } else if (kind == "order") {
    read = order();
  } else {
    at_ = begin;
    const std::string_view rest = line_.substr(begin);
    refuse(fmt::format("{} is no directive; {}there are split, place, replicate, shard and order",
                       quoted(kind.empty() ? rest.substr(0, rest.find_first_of(" \t\r")) : kind),
                       did_you_mean(kind, {kDirectiveNames.begin(), kDirectiveNames.end()})));
  }
  return read;
}

std::string on(const std::vector<Rank>& ranks) {
  std::vector<int> numbers;
  for (const Rank rank : ranks) {
    numbers.push_back(rank.value);
  }
  return fmt::format("on [{}]", fmt::join(numbers, ","));
}

std::string option(std::string_view name, std::string_view value) {
  return value.empty() ? std::string() : fmt::format(" {}={}", name, value);
}

std::string byte_option(std::int64_t bytes) {
  constexpr std::string_view kUnits = "KMG";
  std::string unit;
  for (const char next : kUnits) {
    if (bytes % 1024 == 0) {
      bytes /= 1024;
      unit = next;
    } else {
      break;
    }
  }
  return std::to_string(bytes) + unit;
}

struct Writer {
  std::string operator()(const SplitDirective& d) const {
    return fmt::format("split {} dim={} n={}", to_string(d.filter), d.dimension, d.parts);
  }
  std::string operator()(const PlaceDirective& d) const {
    return fmt::format(
        "place {} {}{}", to_string(d.filter), on(d.ranks), option("stream", d.stream));
  }
  std::string operator()(const ReplicateDirective& d) const {
    const ReplicateOptions& o = d.options;
    return fmt::format("replicate {} {}{}{}{}{}{}{}",
                       to_string(d.filter),
                       on(d.ranks),
                       o.bucket_bytes ? option("bucket_size", byte_option(*o.bucket_bytes)) : "",
                       option("reduce_stream", o.reduce_stream),
                       option("gather_stream", o.gather_stream),
                       o.shard_optimizer ? " shard_optimizer" : "",
                       o.shard_gradients ? " shard_grads" : "",
                       o.shard_parameters ? " shard_params" : "");
  }
  std::string operator()(const ShardDirective& d) const {
    return fmt::format("shard {} {}{}{}",
                       to_string(d.filter),
                       on(d.ranks),
                       d.parts > 0 ? fmt::format(" n={}", d.parts) : "",
                       option("stream", d.stream));
  }
  std::string operator()(const OrderDirective& d) const {
    std::string text = "order";
    for (const auto& group : d.groups) {
      text += " [";
      for (std::size_t i = 0; i < group.size(); ++i) {
        text += (i > 0 ? "," : "") + to_string(group[i]);
      }
      text += "]";
    }
    return text;
  }
};

}  // namespace

bool looks_like_strategy(std::string_view text) {
  bool is_first = true;
  for (const std::string_view whole : split(text, '\n')) {
    const std::string_view line = formats::trim(whole.substr(0, whole.find('#')));
    if (line.empty()) {
      continue;
    }
    const auto end = std::ranges::find_if_not(line, is_word);
    const auto word = line.substr(0, static_cast<std::size_t>(end - line.begin()));
    const std::string_view rest = formats::trim(line.substr(word.size()));
    const bool names_directive = std::ranges::find(kDirectiveNames, word) != kDirectiveNames.end();
    // A directive with a mistyped name still has the shape of one, which no row of a schedule has.
    const bool is_shaped = !word.empty() && (rest.starts_with('{') || rest.starts_with('['));
    if (is_shaped || (is_first && names_directive)) {
      return true;
    }
    is_first = false;
  }
  return false;
}

Strategy parse_strategy(std::string_view text) {
  formats::require_size(text);
  std::vector<Directive> directives;
  std::vector<std::size_t> lines;
  formats::FaultList faults;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t newline = text.find('\n');
    const std::string_view whole = text.substr(0, newline);
    text = newline == std::string_view::npos ? std::string_view{} : text.substr(newline + 1);
    const std::string_view line = whole.substr(0, whole.find('#'));
    if (!formats::trim(line).empty()) {
      faults.attempt([&] {
        directives.push_back(LineReader(line, number).directive());
        lines.push_back(number);
      });
    }
  }
  faults.refuse_if_any();
  return Strategy(std::move(directives), std::move(lines));
}

std::string to_string(const Directive& directive) {
  return std::visit(Writer{}, directive);
}

std::string to_string(const Strategy& strategy) {
  std::string text;
  for (const Directive& directive : strategy.directives()) {
    text += to_string(directive) + "\n";
  }
  return text;
}

}  // namespace stagecraft
