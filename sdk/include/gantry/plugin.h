#pragma once

#include <torch/version.h>

#include <type_traits>
#include <version>

#include "gantry/catalogue.h"
#include "gantry/export.h"
#include "gantry/kinds.h"
#include "gantry/parameters.h"
#include "gantry/plugin_entry.h"
#include "gantry/version.h"

/// How a shared library becomes a plugin. Once per library, at namespace scope:
///   GANTRY_PLUGIN("acme-gradnorm", "1.0.0");
/// and once per component, in the source file that defines its class:
///   GANTRY_HOOK(GradNormHook, "acme/GradNorm", "Logs the global norm of the gradients.");
/// The class has `Class(const gantry::Config&, gantry::Context&)` and, if it reads any key,
/// `static void declare(gantry::Parameters&)`. Names are made of A-Z a-z 0-9 _ . / - ; those without a
/// vendor ("acme/") belong to Gantry's own plugins.
///
/// What the macros leave in the file:
///  - ELF notes (section .note.gantry, owner "GANTRY"), which are read without loading the file: one of type
///    GANTRY_NOTE_PLUGIN, lines of "key=value" about the library and its build; one of type
///    GANTRY_NOTE_COMPONENT per component, "kind\nabi\nname";
///  - pointers in the section gantry_components, which the one exported function, gantry_plugin_info, hands
///    to the host. Nothing runs when the file is loaded.

namespace gantry {

namespace detail {

constexpr bool valid_name(const char* name) {
  if (*name == 0) return false;
  for (; *name; ++name) {
    const char c = *name;
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
          c == '/' || c == '-'))
      return false;
  }
  return true;
}

template <class Interface, class Class>
struct Registration {
  static_assert(std::is_base_of_v<Interface, Class>, "the class does not derive from the interface of this kind");
  static void declare(Parameters& parameters) {
    if constexpr (requires { Interface::declare_common(parameters); }) Interface::declare_common(parameters);
    if constexpr (requires { Class::declare(parameters); }) Class::declare(parameters);
  }
  static void* create(const Config& config, Context& context) {
    return static_cast<Interface*>(new Class(config, context));
  }
};

}  // namespace detail
}  // namespace gantry

// --- what this file is compiled with; the host compares, and names every difference ---

#define GANTRY_DETAIL_STR2(x) #x
#define GANTRY_DETAIL_STR(x) GANTRY_DETAIL_STR2(x)
#if defined(_LIBCPP_VERSION)
#define GANTRY_DETAIL_STDLIB "libc++"
#define GANTRY_DETAIL_CXX11_ABI "1"
#else
#define GANTRY_DETAIL_STDLIB "libstdc++"
#define GANTRY_DETAIL_CXX11_ABI GANTRY_DETAIL_STR(_GLIBCXX_USE_CXX11_ABI)
#endif
#if defined(_GLIBCXX_DEBUG)
#define GANTRY_DETAIL_DEBUG_STL "1"
#else
#define GANTRY_DETAIL_DEBUG_STL "0"
#endif
#if defined(__has_feature)
#define GANTRY_DETAIL_FEATURE(x) __has_feature(x)
#else
#define GANTRY_DETAIL_FEATURE(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || GANTRY_DETAIL_FEATURE(address_sanitizer)
#define GANTRY_DETAIL_SANITIZER "address"
#elif defined(__SANITIZE_THREAD__) || GANTRY_DETAIL_FEATURE(thread_sanitizer)
#define GANTRY_DETAIL_SANITIZER "thread"
#else
#define GANTRY_DETAIL_SANITIZER "none"
#endif
#if defined(__clang__)
#define GANTRY_DETAIL_COMPILER "clang " GANTRY_DETAIL_STR(__clang_major__) "." GANTRY_DETAIL_STR(__clang_minor__)
#else
#define GANTRY_DETAIL_COMPILER "gcc " GANTRY_DETAIL_STR(__GNUC__) "." GANTRY_DETAIL_STR(__GNUC_MINOR__)
#endif

/// The fields of the build that must agree, as the lines of a plugin's note.
#define GANTRY_BUILD_NOTE                                                                                              \
  "sdk_abi=" GANTRY_DETAIL_STR(GANTRY_SDK_ABI) "\nsdk=" GANTRY_VERSION "\ntorch=" TORCH_VERSION                        \
                                               "\ncxx11_abi=" GANTRY_DETAIL_CXX11_ABI                                  \
                                               "\ndebug_stl=" GANTRY_DETAIL_DEBUG_STL "\nstdlib=" GANTRY_DETAIL_STDLIB \
                                               "\nsanitizer=" GANTRY_DETAIL_SANITIZER                                  \
                                               "\ncompiler=" GANTRY_DETAIL_COMPILER

#define GANTRY_DETAIL_CAT2(a, b) a##b
#define GANTRY_DETAIL_CAT(a, b) GANTRY_DETAIL_CAT2(a, b)

// The text must hold no character that the assembler or a string literal would treat specially, but for
// the newline: names are checked, the build's fields are ours.
#define GANTRY_DETAIL_NOTE(type, text)                                            \
  __asm__(                                                                        \
      ".pushsection .note.gantry,\"aR\",@note\n.balign 4\n.long 7\n.long 2f-1f\n" \
      ".long " GANTRY_DETAIL_STR(type) "\n.asciz \"GANTRY\"\n.balign 4\n1:\n" text "2:\n.balign 4\n.popsection\n");
#define GANTRY_DETAIL_LINE(text) ".ascii \"" text "\\n\"\n"

#define GANTRY_PLUGIN(plugin_name, plugin_version)                                                                 \
  static_assert(::gantry::detail::valid_name(plugin_name), "plugin names: A-Z a-z 0-9 _ . / -");                   \
  static_assert(::gantry::detail::valid_name(plugin_version), "plugin versions: A-Z a-z 0-9 _ . / -");             \
  GANTRY_DETAIL_NOTE(GANTRY_NOTE_PLUGIN,                                                                           \
                     GANTRY_DETAIL_LINE("name=" plugin_name) GANTRY_DETAIL_LINE("version=" plugin_version)         \
                         GANTRY_DETAIL_LINE("sdk_abi=" GANTRY_DETAIL_STR(GANTRY_SDK_ABI))                          \
                             GANTRY_DETAIL_LINE("sdk=" GANTRY_VERSION) GANTRY_DETAIL_LINE("torch=" TORCH_VERSION)  \
                                 GANTRY_DETAIL_LINE("cxx11_abi=" GANTRY_DETAIL_CXX11_ABI)                          \
                                     GANTRY_DETAIL_LINE("debug_stl=" GANTRY_DETAIL_DEBUG_STL)                      \
                                         GANTRY_DETAIL_LINE("stdlib=" GANTRY_DETAIL_STDLIB)                        \
                                             GANTRY_DETAIL_LINE("sanitizer=" GANTRY_DETAIL_SANITIZER)              \
                                                 GANTRY_DETAIL_LINE("compiler=" GANTRY_DETAIL_COMPILER))           \
  extern "C" {                                                                                                     \
  __attribute__((visibility("hidden"))) extern const ::gantry::ComponentEntry* const __start_gantry_components[];  \
  __attribute__((visibility("hidden"))) extern const ::gantry::ComponentEntry* const __stop_gantry_components[];   \
  GANTRY_API const ::gantry::PluginInfo* gantry_plugin_info() {                                                    \
    static const ::gantry::PluginInfo info = {                                                                     \
        sizeof(::gantry::PluginInfo), "name=" plugin_name "\nversion=" plugin_version "\n" GANTRY_BUILD_NOTE "\n", \
        __start_gantry_components, __stop_gantry_components};                                                      \
    return &info;                                                                                                  \
  }                                                                                                                \
  }                                                                                                                \
  static_assert(true)

#define GANTRY_DETAIL_COMPONENT(id, Interface, Class, kind_text, kind_abi, component_name, summary_text)           \
  static_assert(::gantry::detail::valid_name(component_name), "component names: A-Z a-z 0-9 _ . / -");             \
  GANTRY_DETAIL_NOTE(GANTRY_NOTE_COMPONENT, GANTRY_DETAIL_LINE(kind_text) GANTRY_DETAIL_LINE(                      \
                                                GANTRY_DETAIL_STR(kind_abi)) GANTRY_DETAIL_LINE(component_name))   \
  namespace {                                                                                                      \
  constexpr ::gantry::ComponentEntry GANTRY_DETAIL_CAT(gantry_entry_, id) = {                                      \
      sizeof(::gantry::ComponentEntry),                                                                            \
      kind_text,                                                                                                   \
      kind_abi,                                                                                                    \
      component_name,                                                                                              \
      summary_text,                                                                                                \
      &::gantry::detail::Registration<Interface, Class>::declare,                                                  \
      &::gantry::detail::Registration<Interface, Class>::create};                                                  \
  __attribute__((section("gantry_components"), used, retain))                                                      \
  const ::gantry::ComponentEntry* const GANTRY_DETAIL_CAT(gantry_pointer_, id) = &GANTRY_DETAIL_CAT(gantry_entry_, \
                                                                                                    id);           \
  }                                                                                                                \
  static_assert(true)

#define GANTRY_SOLVER(Class, name, summary) \
  GANTRY_DETAIL_COMPONENT(__COUNTER__, ::gantry::BaseSolver, Class, "solver", GANTRY_ABI_SOLVER, name, summary)
#define GANTRY_HOOK(Class, name, summary) \
  GANTRY_DETAIL_COMPONENT(__COUNTER__, ::gantry::Hook, Class, "hook", GANTRY_ABI_HOOK, name, summary)
#define GANTRY_MODEL(Class, name, summary) \
  GANTRY_DETAIL_COMPONENT(__COUNTER__, ::gantry::Model, Class, "model", GANTRY_ABI_MODEL, name, summary)
#define GANTRY_MODULE(Class, name, summary) \
  GANTRY_DETAIL_COMPONENT(__COUNTER__, ::gantry::Module, Class, "module", GANTRY_ABI_MODULE, name, summary)
#define GANTRY_LOSS(Class, name, summary) \
  GANTRY_DETAIL_COMPONENT(__COUNTER__, ::gantry::Loss, Class, "loss", GANTRY_ABI_LOSS, name, summary)
#define GANTRY_DATASET(Class, name, summary) \
  GANTRY_DETAIL_COMPONENT(__COUNTER__, ::gantry::Dataset, Class, "dataset", GANTRY_ABI_DATASET, name, summary)
#define GANTRY_SAMPLER(Class, name, summary) \
  GANTRY_DETAIL_COMPONENT(__COUNTER__, ::gantry::Sampler, Class, "sampler", GANTRY_ABI_SAMPLER, name, summary)
#define GANTRY_TRANSFORM(Class, name, summary) \
  GANTRY_DETAIL_COMPONENT(__COUNTER__, ::gantry::Transform, Class, "transform", GANTRY_ABI_TRANSFORM, name, summary)
#define GANTRY_OPTIMIZER(Class, name, summary) \
  GANTRY_DETAIL_COMPONENT(__COUNTER__, ::gantry::Optimizer, Class, "optimizer", GANTRY_ABI_OPTIMIZER, name, summary)
#define GANTRY_LR_SCHEDULER(Class, name, summary)                                                                   \
  GANTRY_DETAIL_COMPONENT(__COUNTER__, ::gantry::LrScheduler, Class, "lr_scheduler", GANTRY_ABI_LR_SCHEDULER, name, \
                          summary)
#define GANTRY_METRIC(Class, name, summary) \
  GANTRY_DETAIL_COMPONENT(__COUNTER__, ::gantry::Metric, Class, "metric", GANTRY_ABI_METRIC, name, summary)
#define GANTRY_FILE_SYSTEM(Class, name, summary)                                                                 \
  GANTRY_DETAIL_COMPONENT(__COUNTER__, ::gantry::FileSystem, Class, "file_system", GANTRY_ABI_FILE_SYSTEM, name, \
                          summary)
#define GANTRY_COMMAND(Class, name, summary) \
  GANTRY_DETAIL_COMPONENT(__COUNTER__, ::gantry::Command, Class, "command", GANTRY_ABI_COMMAND, name, summary)
