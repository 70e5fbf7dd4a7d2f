"""What the IIS of a stand-in is configured with, and what may stand there: names that Microsoft documents, made up
otherwise."""

HOST, DENY, ALLOW = 'allowDefinition="AppHostOnly" overrideModeDefault="Deny"', 'overrideModeDefault="Deny"', 'overrideModeDefault="Allow"'
OPEN = 'allowUnrecognizedAttributes="true"'


def attribute(name, kind="string", more=""):
    return f'<attribute name="{name}" type="{kind}" {more}/>'


def key(name):
    return attribute(name, more='required="true" isUniqueKey="true" ')


def enum(name, values):
    names = "".join(f'<enum name="{value}" value="{number}" />' for number, value in enumerate(values))
    return f'<attribute name="{name}" type="enum">{names}</attribute>'


def element(name, inner=""):
    return f'<element name="{name}" {OPEN}>{inner}</element>'


def entries(inner, add="add", more=""):
    return f'<collection addElement="{add}" removeElement="remove" clearElement="clear" {OPEN} {more}>{inner}</collection>'


PAIR = 'required="true" isCombinedKey="true" '
ENABLED = attribute("enabled", "bool")
LOG_FILE = enum("logTargetW3C", ["File", "ETW", "File,ETW"]) + "".join(map(attribute, ["directory", "period", "truncateSize", "logExtFileFlags"]))
APPLICATION = "".join(map(attribute, ["applicationPool", "enabledProtocols", "serviceAutoStartProvider"])) + "".join(
    attribute(name, "bool") for name in ["preloadEnabled", "serviceAutoStartEnabled"]
)
SITES = (
    f'<collection addElement="site" defaultElement="siteDefaults">{key("name")}{attribute("id", "uint")}{attribute("serverAutoStart", "bool")}'
    + element("bindings", entries(attribute("protocol", more=PAIR) + attribute("bindingInformation", more=PAIR), "binding"))
    + element("limits", attribute("maxBandwidth") + attribute("maxConnections") + attribute("connectionTimeout", "timeSpan"))
    + element("logFile", LOG_FILE)
    + element("traceFailedRequestsLogging", ENABLED + attribute("directory"))
    + element("applicationDefaults", APPLICATION)
    + f'<collection addElement="application">{key("path")}{APPLICATION}'
    + f'<collection addElement="virtualDirectory">{key("path")}{attribute("physicalPath")}</collection></collection></collection>'
    + element("siteDefaults", element("logFile", LOG_FILE) + element("traceFailedRequestsLogging", ENABLED))
    + element("applicationDefaults", APPLICATION)
)
POOL = (
    attribute("autoStart", "bool")
    + attribute("enable32BitAppOnWin64", "bool")
    + "".join(map(attribute, ["managedRuntimeVersion", "queueLength"]))
    + enum("managedPipelineMode", ["Integrated", "Classic"])
    + enum("startMode", ["OnDemand", "AlwaysRunning"])
    + element(
        "processModel",
        enum("identityType", ["LocalSystem", "LocalService", "NetworkService", "SpecificUser", "ApplicationPoolIdentity"])
        + "".join(map(attribute, ["userName", "password"]))
        + "".join(attribute(name, "bool") for name in ["loadUserProfile", "setProfileEnvironment", "pingingEnabled"])
        + attribute("idleTimeout", "timeSpan")
        + attribute("maxProcesses", "uint"),
    )
    + element("recycling", element("periodicRestart", attribute("time", "timeSpan") + element("schedule", entries(key("value")))))
    + element("failure")
    + element("cpu")
    + element("environmentVariables", entries(key("name") + attribute("value")))
)
HANDLER = "".join(map(attribute, ["path", "verb", "type", "modules", "scriptProcessor", "resourceType", "requireAccess"]))
SECTIONS = {
    "system.applicationHost/applicationPools": (
        HOST,
        f'<collection addElement="add" defaultElement="applicationPoolDefaults">{key("name")}{POOL}</collection>'
        + element("applicationPoolDefaults", POOL),
    ),
    "system.applicationHost/log": (
        HOST,
        enum("centralLogFileMode", ["Site", "CentralBinary", "CentralW3C"]) + element("centralBinaryLogFile", LOG_FILE)
        + element("centralW3CLogFile", LOG_FILE),
    ),
    "system.applicationHost/sites": (HOST, SITES),
    "system.webServer/caching": (ALLOW, ENABLED),
    "system.webServer/defaultDocument": (ALLOW, ENABLED + element("files", entries(key("value"), more='mergeAppend="false"'))),
    "system.webServer/directoryBrowse": (ALLOW, ENABLED + attribute("showFlags")),
    "system.webServer/fastCgi": (
        HOST,
        entries(
            attribute("fullPath", more=PAIR) + attribute("arguments", more='defaultValue="" isCombinedKey="true" ')
            + "".join(attribute(name, "uint") for name in ["maxInstances", "instanceMaxRequests", "idleTimeout", "activityTimeout"])
            + element("environmentVariables", entries(key("name") + attribute("value"), "environmentVariable")),
            "application",
        ),
    ),
    "system.webServer/globalModules": (HOST, entries(key("name") + attribute("image"))),
    "system.webServer/handlers": (DENY, attribute("accessPolicy") + entries(key("name") + HANDLER, more='mergeAppend="false"')),
    "system.webServer/httpCompression": (ALLOW, ""),
    "system.webServer/httpErrors": (
        ALLOW,
        enum("errorMode", ["DetailedLocalOnly", "Custom", "Detailed"]) + enum("existingResponse", ["Auto", "Replace", "PassThrough"])
        + entries(attribute("statusCode", "uint", PAIR) + attribute("subStatusCode", "int", 'defaultValue="-1" isCombinedKey="true" ')
                  + attribute("path"), "error"),
    ),
    "system.webServer/httpLogging": (DENY, attribute("dontLog", "bool")),
    "system.webServer/httpProtocol": (ALLOW, element("customHeaders", entries(key("name") + attribute("value")))),
    "system.webServer/httpRedirect": (ALLOW, ENABLED),
    "system.webServer/modules": (DENY, attribute("runAllManagedModulesForAllRequests", "bool") + entries(key("name") + attribute("type"))),
    "system.webServer/security/access": (DENY, attribute("sslFlags")),
    "system.webServer/security/authentication/anonymousAuthentication": (DENY, ENABLED + attribute("userName")),
    "system.webServer/security/authentication/basicAuthentication": (DENY, ENABLED),
    "system.webServer/security/authentication/windowsAuthentication": (DENY, ENABLED + element("providers", entries(key("value")))),
    "system.webServer/security/isapiCgiRestriction": (HOST, entries(key("path") + attribute("allowed", "bool"))),
    "system.webServer/security/requestFiltering": (
        ALLOW,
        element("fileExtensions", entries(key("fileExtension") + attribute("allowed", "bool")))
        + element("requestLimits", attribute("maxAllowedContentLength", "uint"))
        + element("hiddenSegments", entries(key("segment"))),
    ),
    "system.webServer/serverRuntime": (DENY, attribute("uploadReadAheadSize", "uint")),
    "system.webServer/staticContent": (ALLOW, entries(key("fileExtension") + attribute("mimeType"), "mimeMap")),
    "system.webServer/urlCompression": (ALLOW, ""),
}  # fmt: skip
# Of .NET's sections the server's file says nothing.
OF_NET = {
    "appSettings": entries(key("key") + attribute("value")),
    "system.web/compilation": attribute("debug", "bool"),
    "system.web/customErrors": enum("mode", ["RemoteOnly", "On", "Off"]),
}


def schema():
    all_of_them = {name: inner for name, (_, inner) in SECTIONS.items()} | OF_NET
    sections = "".join(f'<sectionSchema name="{name}" {OPEN}>{inner}</sectionSchema>' for name, inner in all_of_them.items())
    return f"<configSchema>{sections}</configSchema>".encode()


def declared():
    tree = {}
    for name, (mode, _) in SECTIONS.items():
        *groups, last = name.split("/")
        at = tree
        for group in groups:
            at = at.setdefault(group, {})
        at[last] = mode

    def written(at):
        return "".join(
            f'<sectionGroup name="{name}">\r\n{written(inner)}</sectionGroup>\r\n' if isinstance(inner, dict)
            else f'<section name="{name}" {inner} />\r\n'
            for name, inner in at.items()
        )  # fmt: skip

    return written(tree)


def server(has_net):
    """An `applicationHost.config`; .NET brings pools of its own."""
    pools = ["DefaultAppPool"] + [".NET v4.5 Classic", ".NET v4.5"] * has_net
    pools = "".join(f'<add name="{pool}" />\r\n' for pool in pools)
    return f"""<configuration>\r
<configSections>\r
{declared()}</configSections>\r
<system.applicationHost>\r
<applicationPools>\r
{pools}<applicationPoolDefaults managedRuntimeVersion="v4.0" />\r
</applicationPools>\r
<sites>\r
<site name="Default Web Site" id="1">\r
<application path="/">\r
<virtualDirectory path="/" physicalPath="%SystemDrive%\\inetpub\\wwwroot" />\r
</application>\r
<bindings>\r
<binding protocol="http" bindingInformation="*:80:" />\r
</bindings>\r
</site>\r
<applicationDefaults applicationPool="DefaultAppPool" />\r
</sites>\r
</system.applicationHost>\r
</configuration>\r
""".encode()
