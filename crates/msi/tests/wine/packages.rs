//! Packages for `wixl`, one for each table or rule.

use wincimg_testkit::transform::TestTransform;

use super::transforms;

/// A package.
pub(crate) struct TestPackage {
    pub(crate) name: &'static str,
    pub(crate) arch: &'static str,
    /// What is in its `Product`.
    body: &'static str,
    /// Attributes of its `Package`.
    attributes: &'static str,
    /// Queries that add what `wixl` has no elements for.
    pub(crate) queries: &'static [&'static str],
    /// Properties of the command line.
    pub(crate) properties: &'static [(&'static str, &'static str)],
    /// How often a file's line is repeated.
    pub(crate) repeats: usize,
    /// Transform in `C:\own.mst`, and in the package as `own`.
    pub(crate) transform: Option<fn(usize) -> TestTransform>,
    /// True to move the cabinet out of the package.
    pub(crate) is_cabinet_outside: bool,
    pub(crate) expected: Expected,
    pub(crate) fails_in_wine: bool,
}

/// Result of an installation.
pub(crate) enum Expected {
    Installs,
    /// Fails with this part of a message.
    Fails(&'static str),
}

const DEFAULT: TestPackage = TestPackage {
    name: "",
    arch: "x64",
    body: "",
    attributes: "Compressed='yes' InstallScope='perMachine'",
    queries: &[],
    properties: &[],
    repeats: 1,
    transform: None,
    is_cabinet_outside: false,
    expected: Expected::Installs,
    fails_in_wine: true,
};

impl TestPackage {
    /// The source, with the codes of a number.
    pub(crate) fn source(&self, number: usize) -> String {
        let Self {
            name,
            body,
            attributes,
            ..
        } = self;
        let media = if body.contains("<Media ") {
            ""
        } else {
            "<Media Id='1' Cabinet='own.cab' EmbedCab='yes'/>"
        };
        format!(
            "<Wix xmlns='http://schemas.microsoft.com/wix/2006/wi'>
            <Product Name='Contoso {name}' Id='{{10000000-0000-0000-0000-{number:012}}}'
              UpgradeCode='{{20000000-0000-0000-0000-{number:012}}}' Language='1033'
              Codepage='1252' Version='1.2.{number}' Manufacturer='Contoso Ltd.'>
            <Package Id='{{30000000-0000-0000-0000-{number:012}}}' Keywords='Installer'
              Description='Test' InstallerVersion='500' Languages='1033'
              SummaryCodepage='1252' {attributes}/>
            {media}{}</Product></Wix>",
            body.replace(
                "GUID",
                &format!("40000000-0000-0000-{number:04}-00000000000")
            )
        )
    }
}

/// A component with a file, and the folder and feature around it.
macro_rules! with_file {
    ($folder:literal, $more:literal) => {
        concat!(
            "<Directory Id='TARGETDIR' Name='SourceDir'><Directory Id='ProgramFiles64Folder'>",
            "<Directory Id='INSTALLDIR' Name='",
            $folder,
            "'>",
            "<Component Id='Main' Guid='{GUID1}' Win64='yes'>",
            "<File Id='MainFile' Name='main.exe' Source='main.exe' KeyPath='yes'/>",
            $more,
            "</Component></Directory></Directory></Directory>",
            "<Feature Id='Complete' Level='1'><ComponentRef Id='Main'/></Feature>"
        )
    };
}

pub(crate) const PACKAGES: &[TestPackage] = &[
    TestPackage {
        name: "files-of-32-bits",
        arch: "x86",
        body: "<Directory Id='TARGETDIR' Name='SourceDir'><Directory Id='ProgramFilesFolder'>
          <Directory Id='INSTALLDIR' Name='Old Contoso'>
          <Component Id='Main' Guid='{GUID1}'>
            <File Id='a' Name='a b.txt' Source='a.txt' KeyPath='yes'/>
            <File Id='b' Name='b.txt' Source='b.txt'/>
          </Component>
          <Directory Id='Sub' Name='sub'><Directory Id='Deep' Name='deep'>
            <Component Id='Below' Guid='{GUID2}'>
              <File Id='c' Name='c.txt' Source='c.txt' KeyPath='yes'/></Component>
          </Directory></Directory></Directory></Directory></Directory>
          <Feature Id='Complete' Level='1'>
            <ComponentRef Id='Main'/><ComponentRef Id='Below'/></Feature>",
        ..DEFAULT
    },
    TestPackage { name: "files", body: with_file!("Contoso Files", ""), repeats: 20_000, ..DEFAULT },
    TestPackage {
        name: "install-dir",
        body: with_file!("Contoso Dir", ""),
        properties: &[("INSTALLDIR", r"C:\elsewhere\x")],
        ..DEFAULT
    },
    TestPackage {
        name: "folders",
        body: with_file!("Contoso Folders", "<CreateFolder/>"),
        queries: &[
            "INSERT INTO `Directory` (`Directory`,`Directory_Parent`,`DefaultDir`) VALUES ('Made','INSTALLDIR','MADE~1|made by it')",
            "INSERT INTO `CreateFolder` (`Directory_`,`Component_`) VALUES ('Made','Main')",
        ],
        ..DEFAULT
    },
    TestPackage { name: "features", body: FEATURES, ..DEFAULT },
    TestPackage {
        name: "add-local",
        body: FEATURES_2,
        properties: &[("ADDLOCAL", "Child")],
        ..DEFAULT
    },
    TestPackage {
        name: "install-level",
        body: FEATURES_3,
        properties: &[("INSTALLLEVEL", "100")],
        ..DEFAULT
    },
    TestPackage {
        name: "all-features",
        body: FEATURES_4,
        properties: &[("ADDLOCAL", "ALL")],
        ..DEFAULT
    },
    TestPackage {
        name: "conditions",
        body: "<Property Id='MODE' Value='fast'/>
          <Directory Id='TARGETDIR' Name='SourceDir'><Directory Id='ProgramFiles64Folder'>
          <Directory Id='INSTALLDIR' Name='Contoso Conditions'>
          <Component Id='Yes' Guid='{GUID1}' Win64='yes'>
            <File Id='yes' Name='yes.txt' Source='yes.txt' KeyPath='yes'/></Component>
          <Component Id='No' Guid='{GUID2}' Win64='yes'>
            <File Id='no' Name='no.txt' Source='no.txt' KeyPath='yes'/></Component>
          </Directory></Directory></Directory>
          <Feature Id='Complete' Level='1'><ComponentRef Id='Yes'/><ComponentRef Id='No'/></Feature>",
        queries: &[
            "UPDATE `Component` SET `Condition` = 'MODE ~= \"FAST\" AND VersionNT64' WHERE `Component` = 'Yes'",
            "UPDATE `Component` SET `Condition` = 'MODE = \"slow\" OR NOT Privileged' WHERE `Component` = 'No'",
        ],
        ..DEFAULT
    },
    TestPackage {
        name: "registry",
        body: with_file!("Contoso Registry",
          "<RegistryValue Root='HKLM' Key='SOFTWARE\\Contoso\\Types' Name='text' Type='string' Value='a b'/>
           <RegistryValue Root='HKLM' Key='SOFTWARE\\Contoso\\Types' Name='number' Type='integer' Value='42'/>
           <RegistryValue Root='HKLM' Key='SOFTWARE\\Contoso\\Types' Type='string' Value='default'/>"),
        queries: &[
            "INSERT INTO `Registry` (`Registry`,`Root`,`Key`,`Name`,`Value`,`Component_`) VALUES ('r1',2,'SOFTWARE\\Contoso\\Types','binary','#x00ff10','Main')",
            "INSERT INTO `Registry` (`Registry`,`Root`,`Key`,`Name`,`Value`,`Component_`) VALUES ('r2',2,'SOFTWARE\\Contoso\\Types','expand','#%[\\%]SystemRoot[\\%]\\x','Main')",
            "INSERT INTO `Registry` (`Registry`,`Root`,`Key`,`Name`,`Value`,`Component_`) VALUES ('r3',2,'SOFTWARE\\Contoso\\Types','list','a[~]b[~]c','Main')",
            "INSERT INTO `Registry` (`Registry`,`Root`,`Key`,`Name`,`Value`,`Component_`) VALUES ('r4',2,'SOFTWARE\\Contoso\\Types','negative','#-1','Main')",
            "INSERT INTO `Registry` (`Registry`,`Root`,`Key`,`Name`,`Value`,`Component_`) VALUES ('r5',2,'SOFTWARE\\Contoso\\Types','hash','##text','Main')",
            "INSERT INTO `Registry` (`Registry`,`Root`,`Key`,`Name`,`Value`,`Component_`) VALUES ('r6',2,'SOFTWARE\\Contoso\\Empty','*','','Main')",
            "INSERT INTO `Registry` (`Registry`,`Root`,`Key`,`Name`,`Value`,`Component_`) VALUES ('r7',2,'SYSTEM\\CurrentControlSet\\Control\\Contoso','x','1','Main')",
            "INSERT INTO `Registry` (`Registry`,`Root`,`Key`,`Name`,`Value`,`Component_`) VALUES ('r8',-1,'SOFTWARE\\Contoso\\Either','x','1','Main')",
        ],
        ..DEFAULT
    },
    TestPackage {
        name: "registry-of-32-bits",
        arch: "x86",
        body: "<Directory Id='TARGETDIR' Name='SourceDir'><Directory Id='ProgramFilesFolder'>
          <Directory Id='INSTALLDIR' Name='Contoso Registry 32'>
          <Component Id='Main' Guid='{GUID1}'>
            <File Id='a' Name='a.txt' Source='a.txt' KeyPath='yes'/>
            <RegistryValue Root='HKLM' Key='SOFTWARE\\Contoso\\Narrow' Name='x' Type='string' Value='1'/>
            <RegistryValue Root='HKCR' Key='Contoso.Narrow' Type='string' Value='shared'/>
          </Component></Directory></Directory></Directory>
          <Feature Id='Complete' Level='1'><ComponentRef Id='Main'/></Feature>",
        ..DEFAULT
    },
    TestPackage {
        name: "formatted",
        body: with_file!("Contoso Formatted",
          "<RegistryValue Root='HKLM' Key='SOFTWARE\\Contoso\\Formatted' Name='dir' Type='string' Value='[INSTALLDIR]bin'/>
           <RegistryValue Root='HKLM' Key='SOFTWARE\\Contoso\\Formatted' Name='file' Type='string' Value='[#MainFile]'/>
           <RegistryValue Root='HKLM' Key='SOFTWARE\\Contoso\\Formatted' Name='component' Type='string' Value='[$Main]'/>
           <RegistryValue Root='HKLM' Key='SOFTWARE\\Contoso\\Formatted' Name='group' Type='string' Value='a{ has [Missing]}b{ is [Manufacturer]}'/>
           <RegistryValue Root='HKLM' Key='SOFTWARE\\Contoso\\Formatted' Name='bracket' Type='string' Value='[\\[]x[\\]]'/>
           <RegistryValue Root='HKLM' Key='SOFTWARE\\Contoso\\Formatted' Name='missing' Type='string' Value='[Missing]'/>
           <RegistryValue Root='HKLM' Key='SOFTWARE\\Contoso\\Formatted' Name='plain' Type='string' Value='{x}'/>
           <RegistryValue Root='HKLM' Key='SOFTWARE\\Contoso\\Formatted' Name='open' Type='string' Value='a {b [ProductVersion] c'/>
           <RegistryValue Root='HKLM' Key='SOFTWARE\\Contoso\\[ProductVersion]' Name='in key' Type='string' Value='[ProductName]'/>"),
        ..DEFAULT
    },
    TestPackage {
        name: "remove-registry",
        body: with_file!("Contoso Remove Registry", ""),
        queries: &[
            "CREATE TABLE `RemoveRegistry` (`RemoveRegistry` CHAR(72) NOT NULL, `Root` SHORT NOT NULL, `Key` CHAR(255) NOT NULL LOCALIZABLE, `Name` CHAR(255) LOCALIZABLE, `Component_` CHAR(72) NOT NULL PRIMARY KEY `RemoveRegistry`)",
            "INSERT INTO `RemoveRegistry` (`RemoveRegistry`,`Root`,`Key`,`Name`,`Component_`) VALUES ('r1',2,'SOFTWARE\\Contoso\\Types','number','Main')",
            "INSERT INTO `RemoveRegistry` (`RemoveRegistry`,`Root`,`Key`,`Name`,`Component_`) VALUES ('r2',2,'SOFTWARE\\Contoso\\Formatted','-','Main')",
            "INSERT INTO `InstallExecuteSequence` (`Action`,`Sequence`) VALUES ('RemoveRegistryValues',2601)",
        ],
        ..DEFAULT
    },
    TestPackage {
        name: "environment",
        body: with_file!("Contoso Environment", ""),
        queries: &[
            ENVIRONMENT,
            "INSERT INTO `Environment` (`Environment`,`Name`,`Value`,`Component_`) VALUES ('e1','=-*CONTOSO_HOME','[INSTALLDIR]','Main')",
            "INSERT INTO `Environment` (`Environment`,`Name`,`Value`,`Component_`) VALUES ('e2','=-*PATH','[~];[INSTALLDIR]','Main')",
            "INSERT INTO `Environment` (`Environment`,`Name`,`Value`,`Component_`) VALUES ('e3','=-*PATHEXT','.CONTOSO;[~]','Main')",
            "INSERT INTO `Environment` (`Environment`,`Name`,`Value`,`Component_`) VALUES ('e4','+-*CONTOSO_HOME','not again','Main')",
            "INSERT INTO `Environment` (`Environment`,`Name`,`Value`,`Component_`) VALUES ('e5','=-*CONTOSO_MODE','fast','Main')",
            "INSERT INTO `InstallExecuteSequence` (`Action`,`Sequence`) VALUES ('WriteEnvironmentStrings',5200)",
        ],
        ..DEFAULT
    },
    TestPackage {
        name: "service",
        body: with_file!("Contoso Service",
          "<ServiceInstall Id='si' Name='ContosoSvc' DisplayName='Contoso [ProductVersion]' Type='ownProcess'
             Start='auto' ErrorControl='normal' Description='Serves' Arguments='-dir \"[INSTALLDIR]\"'>
             <ServiceDependency Id='RpcSs'/></ServiceInstall>
           <ServiceControl Id='sc' Name='ContosoSvc' Stop='both' Remove='uninstall'/>"),
        ..DEFAULT
    },
    TestPackage {
        name: "shortcut",
        body: with_file!("Contoso Shortcut",
          "<Shortcut Id='s1' Directory='INSTALLDIR' Name='Contoso App' Target='[#MainFile]' Arguments='-x' WorkingDirectory='INSTALLDIR'/>"),
        ..DEFAULT
    },
    TestPackage {
        name: "file-type",
        body: with_file!("Contoso Type",
          "<ProgId Id='Contoso.Document' Description='Contoso document'>
             <Extension Id='cdoc' ContentType='application/contoso'>
               <Verb Id='open' Command='Open' TargetFile='MainFile' Argument='\"%1\"'/>
             </Extension></ProgId>"),
        ..DEFAULT
    },
    TestPackage {
        name: "class",
        body: with_file!("Contoso Class", ""),
        queries: &[
            "CREATE TABLE `Class` (`CLSID` CHAR(38) NOT NULL, `Context` CHAR(32) NOT NULL, `Component_` CHAR(72) NOT NULL, `ProgId_Default` CHAR(255), `Description` CHAR(255) LOCALIZABLE, `AppId_` CHAR(38), `FileTypeMask` CHAR(255), `Icon_` CHAR(72), `IconIndex` SHORT, `DefInprocHandler` CHAR(32), `Argument` CHAR(255), `Feature_` CHAR(38) NOT NULL, `Attributes` SHORT PRIMARY KEY `CLSID`, `Context`, `Component_`)",
            "CREATE TABLE `ProgId` (`ProgId` CHAR(255) NOT NULL, `ProgId_Parent` CHAR(255), `Class_` CHAR(38), `Description` CHAR(255) LOCALIZABLE, `Icon_` CHAR(72), `IconIndex` SHORT PRIMARY KEY `ProgId`)",
            "INSERT INTO `Class` (`CLSID`,`Context`,`Component_`,`ProgId_Default`,`Description`,`Argument`,`Feature_`) VALUES ('{50000000-0000-0000-0000-000000000001}','LocalServer32','Main','Contoso.Class.1','Contoso class','/automation','Complete')",
            "INSERT INTO `ProgId` (`ProgId`,`Class_`,`Description`) VALUES ('Contoso.Class.1','{50000000-0000-0000-0000-000000000001}','Contoso class')",
            "INSERT INTO `ProgId` (`ProgId`,`ProgId_Parent`,`Description`) VALUES ('Contoso.Class','Contoso.Class.1','Contoso class')",
            "INSERT INTO `InstallExecuteSequence` (`Action`,`Sequence`) VALUES ('RegisterClassInfo',4600)",
            "INSERT INTO `InstallExecuteSequence` (`Action`,`Sequence`) VALUES ('RegisterProgIdInfo',4800)",
        ],
        ..DEFAULT
    },
    TestPackage {
        name: "font",
        body: with_file!("Contoso Font", ""),
        queries: &[
            "CREATE TABLE `Font` (`File_` CHAR(72) NOT NULL, `FontTitle` CHAR(128) PRIMARY KEY `File_`)",
            "INSERT INTO `Font` (`File_`,`FontTitle`) VALUES ('MainFile','Contoso Sans (TrueType)')",
            "INSERT INTO `InstallExecuteSequence` (`Action`,`Sequence`) VALUES ('RegisterFonts',5300)",
        ],
        ..DEFAULT
    },
    TestPackage {
        name: "ini",
        body: with_file!("Contoso Ini", ""),
        queries: &[
            "CREATE TABLE `IniFile` (`IniFile` CHAR(72) NOT NULL, `FileName` CHAR(255) NOT NULL LOCALIZABLE, `DirProperty` CHAR(72), `Section` CHAR(96) NOT NULL LOCALIZABLE, `Key` CHAR(128) NOT NULL LOCALIZABLE, `Value` CHAR(255) NOT NULL LOCALIZABLE, `Action` SHORT NOT NULL, `Component_` CHAR(72) NOT NULL PRIMARY KEY `IniFile`)",
            "INSERT INTO `IniFile` (`IniFile`,`FileName`,`DirProperty`,`Section`,`Key`,`Value`,`Action`,`Component_`) VALUES ('i1','CONTOSO.INI|contoso.ini','INSTALLDIR','Main','Dir','[INSTALLDIR]',0,'Main')",
            "INSERT INTO `IniFile` (`IniFile`,`FileName`,`DirProperty`,`Section`,`Key`,`Value`,`Action`,`Component_`) VALUES ('i2','CONTOSO.INI|contoso.ini','INSTALLDIR','Main','Mode','fast',1,'Main')",
            "INSERT INTO `IniFile` (`IniFile`,`FileName`,`DirProperty`,`Section`,`Key`,`Value`,`Action`,`Component_`) VALUES ('i3','CONTOSO.INI|contoso.ini','INSTALLDIR','Other','Mode','slow',0,'Main')",
            "INSERT INTO `InstallExecuteSequence` (`Action`,`Sequence`) VALUES ('WriteIniValues',5100)",
        ],
        ..DEFAULT
    },
    TestPackage {
        name: "duplicate-file",
        body: with_file!("Contoso Copy", ""),
        queries: &[
            "CREATE TABLE `DuplicateFile` (`FileKey` CHAR(72) NOT NULL, `Component_` CHAR(72) NOT NULL, `File_` CHAR(72) NOT NULL, `DestName` CHAR(255) LOCALIZABLE, `DestFolder` CHAR(72) PRIMARY KEY `FileKey`)",
            "INSERT INTO `DuplicateFile` (`FileKey`,`Component_`,`File_`,`DestName`,`DestFolder`) VALUES ('d1','Main','MainFile','copy.exe','INSTALLDIR')",
            "INSERT INTO `InstallExecuteSequence` (`Action`,`Sequence`) VALUES ('DuplicateFiles',4210)",
        ],
        ..DEFAULT
    },
    TestPackage {
        name: "set-property",
        body: with_file!("Contoso Actions",
          "<RegistryValue Root='HKLM' Key='SOFTWARE\\Contoso\\Actions' Name='greeting' Type='string' Value='[GREETING]'/>
           <RegistryValue Root='HKLM' Key='SOFTWARE\\Contoso\\Actions' Name='other' Type='string' Value='[OTHER]'/>
           <RegistryValue Root='HKLM' Key='SOFTWARE\\Contoso\\Actions' Name='after dialogs' Type='string' Value='[AFTERDIALOGS]'/>"),
        queries: &[
            "INSERT INTO `CustomAction` (`Action`,`Type`,`Source`,`Target`) VALUES ('SetGreeting',51,'GREETING','Hello [Manufacturer]')",
            "INSERT INTO `CustomAction` (`Action`,`Type`,`Source`,`Target`) VALUES ('SetOther',51,'OTHER','never')",
            "INSERT INTO `CustomAction` (`Action`,`Type`,`Source`,`Target`) VALUES ('SetDir',51,'INSTALLDIR','C:\\by action')",
            "INSERT INTO `CustomAction` (`Action`,`Type`,`Source`,`Target`) VALUES ('SetAfterDialogs',819,'AFTERDIALOGS','never')",
            "INSERT INTO `InstallExecuteSequence` (`Action`,`Sequence`) VALUES ('SetAfterDialogs',1009)",
            "INSERT INTO `InstallExecuteSequence` (`Action`,`Sequence`) VALUES ('SetGreeting',1010)",
            "INSERT INTO `InstallExecuteSequence` (`Action`,`Condition`,`Sequence`) VALUES ('SetOther','Installed',1011)",
            "INSERT INTO `InstallExecuteSequence` (`Action`,`Sequence`) VALUES ('SetDir',850)",
        ],
        ..DEFAULT
    },
    TestPackage {
        name: "set-directory",
        body: with_file!("Contoso Move", ""),
        queries: &[
            "INSERT INTO `CustomAction` (`Action`,`Type`,`Source`,`Target`) VALUES ('MoveDir',35,'INSTALLDIR','C:\\moved by action')",
            "INSERT INTO `InstallExecuteSequence` (`Action`,`Sequence`) VALUES ('MoveDir',1010)",
        ],
        ..DEFAULT
    },
    TestPackage {
        name: "stop",
        body: with_file!("Contoso Stop", ""),
        queries: &[
            "INSERT INTO `CustomAction` (`Action`,`Type`,`Source`,`Target`) VALUES ('Stop',19,'','Not on [ProductName]')",
            "INSERT INTO `InstallExecuteSequence` (`Action`,`Condition`,`Sequence`) VALUES ('Stop','NOT Installed',1010)",
        ],
        expected: Expected::Fails("Not on Contoso stop"),
        ..DEFAULT
    },
    TestPackage {
        name: "launch-condition",
        body: concat!("<Condition Message='Requires [MISSING_THING]'>MISSING_THING</Condition>", with_file!("Contoso Launch", "")),
        expected: Expected::Fails("Requires"),
        ..DEFAULT
    },
    TestPackage {
        name: "external-cabinet",
        body: with_file!("Contoso External", ""),
        is_cabinet_outside: true,
        queries: &["UPDATE `Media` SET `Cabinet` = 'own.cab'"],
        ..DEFAULT
    },
    TestPackage {
        name: "list-of-programs",
        body: concat!("<Icon Id='app.ico' SourceFile='a.wxs'/><Property Id='ARPPRODUCTICON' Value='app.ico'/>
          <Property Id='ARPHELPLINK' Value='https://contoso.example/help'/><Property Id='ARPNOMODIFY' Value='1'/>
          <Property Id='ARPCOMMENTS' Value='A comment'/>", with_file!("Contoso List", "")),
        ..DEFAULT
    },
    TestPackage {
        name: "search",
        body: concat!("<Property Id='FOUND'><RegistrySearch Id='rs' Root='HKLM' Key='SOFTWARE\\Contoso\\Types' Name='text' Type='raw' Win64='yes'/></Property>
          <Condition Message='Requires Contoso Types'>FOUND = \"a b\"</Condition>", with_file!("Contoso Search",
          "<RegistryValue Root='HKLM' Key='SOFTWARE\\Contoso\\Search' Name='folder' Type='string' Value='[FOLDER]'/>")),
        queries: &[
            "CREATE TABLE `DrLocator` (`Signature_` CHAR(72) NOT NULL, `Parent` CHAR(72), `Path` CHAR(255), `Depth` SHORT PRIMARY KEY `Signature_`, `Parent`, `Path`)",
            "INSERT INTO `DrLocator` (`Signature_`,`Path`) VALUES ('folder','windows\\system32')",
            "INSERT INTO `AppSearch` (`Property`,`Signature_`) VALUES ('FOLDER','folder')",
        ],
        ..DEFAULT
    },
    TestPackage {
        name: "upgrade",
        body: concat!("<Upgrade Id='{60000000-0000-0000-0000-000000000001}'><UpgradeVersion Minimum='1.0.0' Maximum='2.0.0' Property='OLDER'/></Upgrade>", with_file!("Contoso Upgrade", "")),
        ..DEFAULT
    },
    TestPackage {
        name: "component-attributes",
        body: with_file!("Contoso Attributes", ""),
        queries: &["UPDATE `Component` SET `Attributes` = 280 WHERE `Component` = 'Main'"],
        ..DEFAULT
    },
    TestPackage {
        name: "registry-key-path",
        body: "<Directory Id='TARGETDIR' Name='SourceDir'><Directory Id='ProgramFiles64Folder'>
          <Directory Id='INSTALLDIR' Name='Contoso Key Path'>
          <Component Id='Main' Guid='{GUID1}' Win64='yes'>
            <RegistryValue Root='HKLM' Key='SOFTWARE\\Contoso\\KeyPath' Name='x' Type='string' Value='1' KeyPath='yes'/>
          </Component></Directory></Directory></Directory>
          <Feature Id='Complete' Level='1'><ComponentRef Id='Main'/></Feature>",
        ..DEFAULT
    },
    TestPackage {
        name: "refused-directory",
        body: with_file!("Contoso Refused", ""),
        properties: &[("INSTALLDIR", r"D:\x")],
        expected: Expected::Fails("only drive"),
        fails_in_wine: false,
        ..DEFAULT
    },
    TestPackage {
        name: "escaped",
        body: with_file!("Contoso Escaped",
          "<RegistryValue Root='HKLM' Key='SOFTWARE\\Contoso\\Escaped' Name='brackets' Type='string' Value='[\\[]x[\\]]'/>
           <RegistryValue Root='HKLM' Key='SOFTWARE\\Contoso\\Escaped' Name='others' Type='string' Value='[\\{]a[\\}] [\\~][\\%]'/>"),
        ..DEFAULT
    },
    TestPackage {
        name: "transform",
        body: transforms::BODY,
        transform: Some(transforms::changes),
        properties: &[("TRANSFORMS", r"C:\own.mst")],
        ..DEFAULT
    },
    TestPackage {
        name: "transform-inside",
        body: transforms::BODY,
        transform: Some(transforms::changes),
        properties: &[("TRANSFORMS", ":own")],
        ..DEFAULT
    },
];

const ENVIRONMENT: &str = "CREATE TABLE `Environment` (`Environment` CHAR(72) NOT NULL, `Name` CHAR(255) NOT NULL LOCALIZABLE, `Value` CHAR(255) LOCALIZABLE, `Component_` CHAR(72) NOT NULL PRIMARY KEY `Environment`)";

/// Features with levels, a parent and a condition; the folder is that of the package.
macro_rules! features {
    ($folder:literal) => {
        concat!(
            "<Property Id='EXTRA' Value='1'/>",
            "<Directory Id='TARGETDIR' Name='SourceDir'><Directory Id='ProgramFiles64Folder'>",
            "<Directory Id='INSTALLDIR' Name='", $folder, "'>",
            "<Component Id='A' Guid='{GUID1}' Win64='yes'><File Id='a' Name='a.txt' Source='a.txt' KeyPath='yes'/></Component>",
            "<Component Id='B' Guid='{GUID2}' Win64='yes'><File Id='b' Name='b.txt' Source='b.txt' KeyPath='yes'/></Component>",
            "<Component Id='C' Guid='{GUID3}' Win64='yes'><File Id='c' Name='c.txt' Source='c.txt' KeyPath='yes'/></Component>",
            "<Component Id='D' Guid='{GUID4}' Win64='yes'><File Id='d' Name='d.txt' Source='d.txt' KeyPath='yes'/></Component>",
            "</Directory></Directory></Directory>",
            "<Feature Id='Main' Level='1'><ComponentRef Id='A'/>",
            "<Feature Id='Child' Level='1'><ComponentRef Id='B'/></Feature></Feature>",
            "<Feature Id='Rare' Level='100'><ComponentRef Id='C'/></Feature>",
            "<Feature Id='Never' Level='0'><ComponentRef Id='D'/></Feature>"
        )
    };
}

const FEATURES: &str = features!("Contoso Features 1");
const FEATURES_2: &str = features!("Contoso Features 2");
const FEATURES_3: &str = features!("Contoso Features 3");
const FEATURES_4: &str = features!("Contoso Features 4");
