/// word_choice defines options whose value is one of a few words.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "stagecraft/tools/common/command_line.h"

namespace stagecraft::tools {

/// Returns "a, b or c".
[[nodiscard]] std::string words_text(const std::vector<std::string>& words);

/// Accepts one of the words.
[[nodiscard]] CLI::Validator one_of(const std::vector<std::string>& words);

/// Adds an option that sets `value` to the meaning of its word. `kinds`: the meanings by their
/// words, in the order in which help and messages name them. `value` outlives the parsing; the word
/// of its present meaning, if it has one, is the default.
template <class Kind>
CLI::Option* add_choice(CLI::App& app,
                        const std::string& option,
                        Kind& value,
                        const std::vector<std::pair<std::string, Kind>>& kinds,
                        const std::string& about) {
  std::vector<std::string> words;
  std::string usual;
  std::string type;
  for (const auto& [word, kind] : kinds) {
    words.push_back(word);
    usual = kind == value ? word : usual;
    type += (type.empty() ? "" : "|") + word;
  }
  CLI::Option* added = app.add_option_function<std::string>(
      option,
      [&value, kinds](const std::string& given) {
        for (const auto& [word, kind] : kinds) {
          value = word == given ? kind : value;
        }
      },
      about);
  return added->check(one_of(words))->type_name(type)->default_str(usual);
}

/// Returns the meaning of a word. `kinds`: like those of add_choice(). `command`: as in
/// wrong_usage().
/// Errors: UsageArgument for another word.
template <class Kind>
[[nodiscard]] Kind choose(const std::string& command,
                          const std::string& option,
                          const std::string& word,
                          const std::vector<std::pair<std::string, Kind>>& kinds) {
  std::vector<std::string> words;
  for (const auto& [name, kind] : kinds) {
    if (name == word) {
      return kind;
    }
    words.push_back(name);
  }
  wrong_usage(command, option + " expects " + words_text(words) + ", found '" + word + "'");
}

}  // namespace stagecraft::tools
