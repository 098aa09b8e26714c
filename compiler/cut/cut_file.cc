#include "stagecraft/compiler/cut/cut_file.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

using Range = std::pair<int, int>;

constexpr std::string_view kBlanks = " \t\r";

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

std::optional<int> number_in(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0
             ? std::optional(number)
             : std::nullopt;
}

std::optional<Range> range_in(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = number_in(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : number_in(text.substr(dash + 1));
  return first && last ? std::optional(Range(*first, *last)) : std::nullopt;
}

class Lines {
 public:
  Lines(std::string_view text, const std::string& name) : rest_(text), name_(name) {}

  /// Returns the next line that is not blank, without its comment.
  std::optional<std::string_view> next() {
    while (!rest_.empty()) {
      const std::size_t end = std::min(rest_.find('\n'), rest_.size());
      const std::string_view line = rest_.substr(0, end);
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      ++number_;
      if (const auto said = trimmed(line.substr(0, line.find('#'))); !said.empty()) {
        return said;
      }
    }
    return std::nullopt;
  }

  [[noreturn]] void refuse(std::string_view what) const {
    throw Error(Errc::UsageFile,
                number_ == 0 ? fmt::format("{}: {}", name_, what)
                             : fmt::format("{}, line {}: {}", name_, number_, what));
  }

 private:
  std::string_view rest_;
  const std::string& name_;
  int number_ = 0;
};

std::vector<Range> set_in(std::string_view line, const Lines& lines) {
  if (!line.starts_with('{') || !line.ends_with('}')) {
    lines.refuse(
        fmt::format("expected a set of operators, {{0-11 30}}, as on the lines before, found "
                    "\"{}\"",
                    line));
  }
  std::string_view inner = trimmed(line.substr(1, line.size() - 2));
  std::vector<Range> ranges;
  while (!inner.empty()) {
    const std::size_t end = std::min(inner.find_first_of(kBlanks), inner.size());
    const auto range = range_in(inner.substr(0, end));
    if (!range) {
      lines.refuse(fmt::format("expected operators, \"12\" or \"12-29\", found \"{}\"",
                               inner.substr(0, end)));
    }
    ranges.push_back(*range);
    inner = trimmed(inner.substr(end));
  }
  return ranges;
}

/// Header is what the lines before the stages say.
struct Header {
  std::optional<int> microbatch_size;
  std::optional<OperatorListHash> operators;
};

/// Returns the text behind `key`, if the line begins with it.
std::optional<std::string_view> behind(std::string_view key, std::string_view line) {
  const std::size_t end = std::min(line.find_first_of(kBlanks), line.size());
  return line.substr(0, end) == key ? std::optional(trimmed(line.substr(end))) : std::nullopt;
}

/// Reads one line that begins with @.
void add_to_header(std::string_view line, const Lines& lines, Header& header) {
  constexpr std::string_view kSize = "@microbatch-size";
  constexpr std::string_view kOperators = "@operators";
  const auto once = [&](bool known) {
    if (known) {
      lines.refuse(fmt::format("\"{}\" is the second line of its kind; keep one", line));
    }
  };
  if (const auto text = behind(kSize, line)) {
    once(header.microbatch_size.has_value());
    header.microbatch_size = number_in(*text);
    if (!header.microbatch_size || *header.microbatch_size < 1) {
      lines.refuse(fmt::format("expected {} with a number of samples, found \"{}\"", kSize, line));
    }
  } else if (const auto of_model = behind(kOperators, line)) {
    once(header.operators.has_value());
    header.operators = operator_list_hash_in(*of_model);
    if (!header.operators) {
      lines.refuse(
          fmt::format("expected {} with a number of operators and the 16 digits of their "
                      "hash, found \"{}\"",
                      kOperators,
                      line));
    }
  } else {
    lines.refuse(fmt::format("expected {} or {}, found \"{}\"", kSize, kOperators, line));
  }
}

/// Reads the header. Sets `line` to the first line behind it.
Header header_of(Lines& lines, std::optional<std::string_view>& line) {
  Header header;
  for (line = lines.next(); line && line->starts_with('@'); line = lines.next()) {
    add_to_header(*line, lines, header);
  }
  return header;
}

Cut read_sets(std::string_view first, std::optional<CutOrigin> origin, Lines& lines) {
  OperatorSets sets{.origin = std::move(origin)};
  for (std::optional line(first); line; line = lines.next()) {
    sets.stages.push_back(set_in(*line, lines));
  }
  return sets;
}

/// The first stage begins with the first operator; its line is not used.
Cut read_places(std::string_view first, std::optional<CutOrigin> origin, Lines& lines) {
  At at;
  at.origin = std::move(origin);
  for (std::optional line(first); line; line = lines.next()) {
    if (line->starts_with('{') || line->find_first_of(kBlanks) != std::string_view::npos) {
      lines.refuse(fmt::format(
          "expected one parameter path (layers.4) or operator (op:12), found \"{}\"", *line));
    }
    at.places.emplace_back(*line);
  }
  at.places.erase(at.places.begin());
  return at;
}

std::string set_text(const StageCut& stage) {
  std::vector<std::string> ranges;
  for (const auto& [first, last] : stage.ranges) {
    ranges.push_back(first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last));
  }
  return fmt::format("{{{}}}", fmt::join(ranges, " "));
}

}  // namespace

Cut read_cut(std::string_view text, const std::string& name) {
  Lines lines(text, name);
  std::optional<std::string_view> first;
  const Header header = header_of(lines, first);
  if (!first) {
    lines.refuse("expected a line for each stage, found none");
  }
  std::optional<CutOrigin> origin;
  if (header.operators) {
    origin = CutOrigin{name, *header.operators};
  }
  if (first->starts_with('{')) {
    return read_sets(*first, std::move(origin), lines);
  }
  return read_places(*first, std::move(origin), lines);
}

std::optional<int> microbatch_size_in_cut(std::string_view text, const std::string& name) {
  Lines lines(text, name);
  std::optional<std::string_view> first;
  return header_of(lines, first).microbatch_size;
}

std::string write_cut(const CutReport& report) {
  bool chain = true;
  int next = 0;
  for (const StageCut& stage : report.stages) {
    chain = chain && stage.ranges.size() == 1 && stage.first == next;
    next = stage.first + stage.operators;
  }
  std::string text = fmt::format("@operators {}\n", to_string(report.operator_hash));
  for (const StageCut& stage : report.stages) {
    text += fmt::format("{}  # {}{}\n",
                        chain ? fmt::format("op:{}", stage.first) : set_text(stage),
                        stage.name,
                        stage.place.empty() ? "" : ", " + stage.place);
  }
  return text;
}

}  // namespace stagecraft
